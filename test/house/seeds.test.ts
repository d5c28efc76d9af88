import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { createRouterTransport } from "@connectrpc/connect";
import { beforeAll, describe, expect, it } from "@jest/globals";
import { SandboxControlService } from "@turnbox/protocol/turnbox/control/v1/sandbox_control_pb";
import type { ConnectionFactory } from "../../packages/client/src/connection.ts";
import type { Sandbox } from "../../packages/client/src/sandbox/sandbox.ts";
import { Turnbox } from "../../packages/client/src/turnbox/turnbox.ts";
import { REPO } from "../support/process.ts";

const SEEDS = readFileSync(join(REPO, "docs/SEEDS.md"), "utf8");

/** Every line that has to be in the table; its words are those of the page. */
const LINES = [
  "`ExecutionEnvironment`: create, pause, resume, destroy",
  "executeTool with progress",
  "state, capabilities",
  "createSnapshot, rollback",
  "Errors of the environment: capability, not found, not active, unavailable, limit",
  "Native environment over ConnectRPC",
  "AttachSession",
  "Destroyed without querying",
  "Backend and runtime expectations with defaults",
  "Concurrency contract",
  "Local environment",
  "Remote environments E2B, Daytona, Fly",
  "Shared REST helpers",
  "Provider: backend, prepare, syncToRuntime, syncFromRuntime, destroy",
  "Finder",
  "Registry with nil, invalid and not-registered errors, and a default provider",
  "Launcher and Handle: pid, cwd, stdio, stderr, done, wait, stop",
  "ToolHost: text files, path resolution, terminals",
  "ToolHost: authorize, permission decision",
  "Permission operations (4) and decisions (5)",
  "An agent of the Agent Client Protocol in a sandbox",
  "Persistence transient, reuse, archive",
  "Sync modes none, session, turn; reasons start, turn, stop, crash",
  "Sync directions, results, excludes",
  "Network policy: public ingress, outbound, allow, deny, required",
  "Resolved profile with env, secretEnv, runtime root, destroyOnStop",
  "Daytona config: startup source image or snapshot, auto-stop, auto-archive",
  "Daytona provider with its sidecar launcher",
  "Persisted session state with opaque provider state and access expiry",
  "Provider conformance suite",
  "Create, get, list, stop, destroy a sandbox",
  "Status safe under concurrency, and serialised",
  "Exec, ExecStream",
  "Read, write, list, mkdir, remove a file",
  "Snapshot, list, delete",
  "Restore to a new sandbox",
  "Stats",
  "Ports",
  "Expiry",
  "S3 config",
  "Store-backed recovery",
  "Shutdown detached from the caller",
  "Warm pool of machines, with refill",
  "Warm pool of sandboxes, acquire-or-empty",
];

/** The rows of the tables whose header begins with these cells. */
function rowsUnder(...header: readonly string[]): readonly (readonly string[])[] {
  const rows: (readonly string[])[] = [];
  let inside: "no" | "yes" = "no";
  for (const line of SEEDS.split("\n")) {
    const cells = line.startsWith("|")
      ? line
          .slice(1, line.lastIndexOf("|"))
          .split("|")
          .map((cell) => cell.trim())
      : [];
    if (cells.length === 0) inside = "no";
    else if (header.every((cell, index) => cells[index] === cell)) inside = "yes";
    else if (inside === "yes" && !cells.every((cell) => /^:?-+:?$/.test(cell))) rows.push(cells);
  }
  return rows;
}

const SHOWN: readonly (readonly [string, string])[] = rowsUnder("line", "shown by").map(([line = "", by = ""]) => [
  line,
  by,
]);
/** `file`: "name" pairs. */
const NAMED = SHOWN.flatMap(([, by]) =>
  [...by.matchAll(/`([^`]+)`: "([^"]+)"/g)].map(([, file = "", name = ""]) => [file, name] as const),
);

const isTestOf = (file: string, name: string): boolean => {
  const path = join(REPO, file);
  const quoted = name.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&");
  return existsSync(path) && new RegExp(`\\(\\s*["'\`]${quoted}["'\`]`).test(readFileSync(path, "utf8"));
};

describe("the table of what Turnbox descends from", () => {
  it("has every line, and no other", () => {
    expect(SHOWN.map(([line]) => line).toSorted()).toEqual(LINES.toSorted());
  });

  it.each(SHOWN)("names tests for %s, or says why it is not built yet", (_line, by) => {
    expect(by).toMatch(/^(not built yet: .{20,}|(`[^`]+`: "[^"]+"(; |$))+)$/);
  });

  it.each(NAMED)("names a test that is there: %s, %s", (file, name) => {
    expect(file).toMatch(/\.(test|suite)\.ts$/);
    expect([file, name, isTestOf(file, name)]).toEqual([file, name, true]);
  });

  it("would notice a test that is not there", () => {
    const [file = "", name = ""] = NAMED[0] ?? [];
    expect([isTestOf(file, `${name}!`), isTestOf(`${file}x`, name)]).toEqual([false, false]);
  });
});

describe("the verbs of an engine", () => {
  const VERBS = rowsUnder("engine", "here").map(
    ([verb = "", here = ""]) => [verb, [...here.matchAll(/`([\w.]+)`/g)]] as const,
  );
  const connect: ConnectionFactory = () => ({
    transport: createRouterTransport((router) => {
      router.service(SandboxControlService, { createSandbox: () => ({ sandboxId: "fleet:i:s" }) });
    }),
    close: () => undefined,
    [Symbol.dispose]: () => undefined,
  });
  const turnbox = Turnbox.connect({ url: "http://127.0.0.1:1", token: "none", connect });
  let sandbox: Sandbox;
  beforeAll(async () => {
    sandbox = await turnbox.create();
  });

  it("are all there", () => {
    const expected =
      "CreateSandbox GetSandbox ListSandboxes StopSandbox DestroySandbox Exec ExecStream ReadFile WriteFile ListDir MkDir";
    const more = "RemoveFile Snapshot ListSnapshots RestoreSnapshot DeleteSnapshot Stats Shutdown";
    const verbs = VERBS.map(([verb]) => verb);
    expect(verbs).toEqual(expect.arrayContaining([...expected.split(" "), ...more.split(" ")]));
    for (const [verb, paths] of VERBS) expect([verb, paths.length > 0]).toEqual([verb, true]);
  });

  it.each(VERBS.flatMap(([verb, paths]) => paths.map(([, path = ""]) => [verb, path] as const)))(
    "%s is reached by %s",
    (_verb, path) => {
      const found = path
        .split(".")
        .reduce<unknown>((at, name) => (at as Record<string, unknown>)[name], { sandbox, turnbox });
      expect(typeof found).toBe("function");
    },
  );
});
