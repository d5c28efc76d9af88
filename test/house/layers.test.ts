import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import { beforeAll, describe, expect, it } from "@jest/globals";
import { ESLint } from "eslint";
import tseslint from "typescript-eslint";
import { findFolderCycles, importsIn } from "../../scripts/lint/folder-cycles.mjs";
import { ROOMS } from "../../scripts/lint/rooms.mjs";

const root = path.resolve(import.meta.dirname, "../..");
const host = "packages/sandbox-host/src";
const fleet = "packages/orchestrator/src";

/** The packages whose rooms all have a row. */
const ORDERED = { "sandbox-host": ROOMS["sandbox-host"], orchestrator: ROOMS.orchestrator };

let eslint: ESLint;
beforeAll(() => {
  // The texts are in no file, so they have no types; the rules under test need none.
  eslint = new ESLint({
    cwd: root,
    ignore: false,
    overrideConfig: [
      { files: ["**/*.ts"], ...tseslint.configs.disableTypeChecked },
      { files: ["**/*.ts"], languageOptions: { parserOptions: { project: null } } },
    ],
  });
});

/**
 * The rules that object to a text at this path, besides `ignored`: whether a text that stands for a file closes a cycle
 * depends on the files around it.
 */
async function objections(
  file: string,
  text: string,
  ignored: readonly string[] = ["import-x/no-cycle"],
): Promise<readonly (string | null)[]> {
  const [result] = await eslint.lintText(text, { filePath: path.join(root, file) });
  const problems = (result?.messages ?? []).filter(({ ruleId }) => ruleId === null || !ignored.includes(ruleId));
  return [...new Set(problems.map(({ ruleId, message }) => ruleId ?? message))];
}

/** What the rule about rooms and layers says about a text. */
async function reasonOf(file: string, text: string): Promise<string | undefined> {
  const [result] = await eslint.lintText(text, { filePath: path.join(root, file) });
  return result?.messages.find(({ ruleId }) => ruleId === "house/layers")?.message;
}

const imports = (specifier: string) => `import { x } from "${specifier}";\nexport const y = x;\n`;

describe("the boundaries between folders", () => {
  it.each([
    ["a room the edge", `${host}/lifecycle/create.ts`, "../rpc/convert.ts"],
    ["a room a room above it", `${host}/session/session.ts`, "../lifecycle/create.ts"],
    ["a room a room beside it", `${host}/process/launch.ts`, "../tool/execute.ts"],
    ["a room a file beside the rooms", `${host}/lifecycle/create.ts`, "../config.ts"],
    ["a room one that has no row", `${host}/lifecycle/create.ts`, "../elsewhere/x.ts"],
    ["a room of the orchestrator a room above it", `${fleet}/store/store.ts`, "../fleet/fleet.ts"],
    ["a room of the agents a room above it", "packages/agents/src/provider/agent.ts", "../environment/environment.ts"],
    ["a room the composition", `${host}/lifecycle/create.ts`, "../compose.ts"],
    ["a room main", `${fleet}/provisioner/launch.ts`, "../main.ts"],
    ["rpc the composition", `${host}/rpc/session-service.ts`, "../compose.ts"],
    ["the composition main", `${fleet}/compose.ts`, "./main.ts"],
    ["a room an adapter of storage", `${host}/turn/rollback.ts`, "../storage/zfs/zfs-storage.ts"],
    ["rpc an adapter of runtime", `${host}/rpc/tool-service.ts`, "../runtime/gvisor/gvisor-runtime.ts"],
    ["main an adapter", `${host}/main.ts`, "./storage/zfs/zfs-storage.ts"],
    ["a port its own adapter", `${host}/storage/storage.ts`, "./local-disk/local-disk-storage.ts"],
    ["an adapter another one", `${host}/storage/zfs/zfs-storage.ts`, "../local-disk/copy.ts"],
    ["product code a fake", `${host}/lifecycle/create.ts`, "../storage/fake/fake-storage.ts"],
    ["a room a provisioner", `${fleet}/fleet/fleet.ts`, "../provisioner/ec2/ec2-provisioner.ts"],
    ["a room an adapter of the store", `${fleet}/provisioner/launch.ts`, "../store/sqlite/sqlite-store.ts"],
    ["rpc the host client", `${fleet}/rpc/control-service.ts`, "../host/node-sandbox-control.ts"],
    ["a test of a room a real adapter", `${host}/turn/rollback.test.ts`, "../storage/zfs/zfs-storage.ts"],
    ["a port the fleet that uses it", `${fleet}/control/sandbox-control.ts`, "../fleet/fleet.ts"],
    ["the fleet the host client", `${fleet}/fleet/fleet.ts`, "../host/node-sandbox-control.ts"],
    ["the host client the fleet", `${fleet}/host/node-sandbox-control.ts`, "../fleet/fleet.ts"],
    ["the configuration more of an adapter than its settings", `${fleet}/config.ts`, "./provisioner/ec2/ec2-cache.ts"],
    ["a room the settings of an adapter", `${fleet}/fleet/fleet.ts`, "../provisioner/ec2/ec2-settings.ts"],
    ["a port the room that uses it", `${host}/storage/storage.ts`, "../session/session.ts"],
    ["a room the protocol", `${host}/lifecycle/create.ts`, "@turnbox/protocol/turnbox/host/v1/session_pb"],
    ["core the protocol", "packages/core/src/error/reason.ts", "@turnbox/protocol/turnbox/common/v1/error_pb"],
    ["core the wire", "packages/core/src/error/reason.ts", "@turnbox/rpc/wire"],
    ["the server the client of the wire", "packages/rpc/src/server/listen.ts", "../client/transport.ts"],
    ["core a service", "packages/core/src/id/session-id.ts", "@turnbox/sandbox-host"],
    ["core the client", "packages/core/src/id/session-id.ts", "@turnbox/client"],
    ["the client a service", "packages/client/src/client.ts", "@turnbox/orchestrator"],
    ["a package the files of another", `${host}/lifecycle/create.ts`, "../../../core/src/index.ts"],
    ["a package the build of another", `${host}/lifecycle/create.ts`, "@turnbox/core/dist/index.js"],
    ["a package a script", `${host}/lifecycle/create.ts`, "../../../../scripts/bootstrap/layout.mjs"],
    ["the client the command line", "packages/client/src/client.ts", "@turnbox/cli"],
    ["the client the agents", "packages/client/src/turnbox/turnbox.ts", "@turnbox/agents"],
    ["the command line the protocol", "packages/cli/src/verb/turn.ts", "@turnbox/protocol/turnbox/host/v1/session_pb"],
    ["a test of the command line the protocol", "packages/cli/src/x.test.ts", "@turnbox/protocol/health/v1/health_pb"],
    ["the command line an RPC library", "packages/cli/src/verb/turn.ts", "@connectrpc/connect"],
    ["the command line the files of the client", "packages/cli/src/verb/turn.ts", "../../../client/src/client.ts"],
    ["the command line services in memory", "packages/cli/src/verb/turn.ts", "@turnbox/client/fake"],
    ["agents the protocol", "packages/agents/src/mcp/workspace.ts", "@turnbox/protocol/turnbox/host/v1/session_pb"],
    ["agents messages of the protocol", "packages/agents/src/mcp/workspace.ts", "@bufbuild/protobuf"],
    ["agents core", "packages/agents/src/mcp/workspace.ts", "@turnbox/core"],
    ["agents the command line", "packages/agents/src/mcp/workspace.ts", "../../../cli/src/main.ts"],
  ])("do not let %s in: %s from %s", async (_, file, specifier) => {
    expect(await objections(file, imports(specifier))).toEqual(["house/layers"]);
  });

  it.each([
    ["main the composition", `${host}/main.ts`, "./compose.ts"],
    ["the composition an adapter", `${host}/compose.ts`, "./storage/zfs/zfs-storage.ts"],
    ["the composition rpc", `${fleet}/compose.ts`, "./rpc/control-service.ts"],
    ["the composition the host client", `${fleet}/compose.ts`, "./host/node-sandbox-control.ts"],
    ["the configuration the settings of an adapter", `${fleet}/config.ts`, "./provisioner/ec2/ec2-settings.ts"],
    ["rpc the fleet", `${fleet}/rpc/fleet-service.ts`, "../fleet/fleet-view.ts"],
    ["rpc a room", `${host}/rpc/session-service.ts`, "../session/create.ts"],
    ["rpc the protocol", `${host}/rpc/convert.ts`, "@turnbox/protocol/turnbox/host/v1/session_pb"],
    [
      "the host client the protocol",
      `${fleet}/host/node-sandbox-control.ts`,
      "@turnbox/protocol/turnbox/host/v1/session_pb",
    ],
    [
      "the wire form of errors the protocol",
      "packages/rpc/src/wire/connect-error.ts",
      "@turnbox/protocol/turnbox/common/v1/error_pb",
    ],
    ["the client the protocol", "packages/client/src/client.ts", "@turnbox/protocol/turnbox/host/v1/session_pb"],
    ["a room a port", `${host}/lifecycle/create.ts`, "../storage/storage.ts"],
    ["a room a room below it", `${host}/turn/rollback.ts`, "../session/session.ts"],
    ["the command line the client", "packages/cli/src/verb/turn.ts", "@turnbox/client"],
    ["the command line what the client shares", "packages/cli/src/verb/turn.ts", "@turnbox/client/internal"],
    ["the command line the agents", "packages/cli/src/verb/mcp.ts", "@turnbox/agents/mcp"],
    ["agents the client", "packages/agents/src/mcp/workspace.ts", "@turnbox/client"],
    ["a test of agents services in memory", "packages/agents/src/mcp/x.test.ts", "@turnbox/client/fake"],
    ["an adapter its port", `${host}/storage/zfs/zfs-storage.ts`, "../storage.ts"],
    ["an adapter what adapters share", `${host}/runtime/gvisor/exec/start-process.ts`, "../execution/relay-output.ts"],
    ["an adapter itself", `${host}/runtime/gvisor/exec/slot.ts`, "../control-socket.ts"],
    ["a contract test its adapter", `${host}/storage/zfs/zfs-storage.contract.test.ts`, "./zfs-storage.ts"],
    ["a test of a room a fake", `${host}/session/create.test.ts`, "../storage/fake/fake-storage.ts"],
    ["a test of a room a room above it", `${host}/session/session.test.ts`, "../lifecycle/create.ts"],
    ["a service core", `${fleet}/provisioner/launch.ts`, "@turnbox/core"],
    ["an end-to-end test the client", "test/e2e/first.test.ts", "@turnbox/client"],
  ])("let %s in: %s from %s", async (_, file, specifier) => {
    expect(await objections(file, imports(specifier))).toEqual([]);
  });

  it.each([
    ["a type import", 'import type { X } from "../rpc/convert.ts";\nexport type Y = X;\n'],
    ["a type import of a name", 'import { type X } from "../rpc/convert.ts";\nexport type Y = X;\n'],
    ["a type in place", 'export type Y = import("../rpc/convert.ts").X;\n'],
    ["a re-export", 'export { x } from "../rpc/convert.ts";\n'],
    ["a re-export of everything", 'export * from "../rpc/convert.ts";\n'],
    ["a dynamic import", 'export const load = () => import("../rpc/convert.ts");\n'],
    ["a detour in the path", imports("./../lifecycle/../rpc/convert.ts")],
  ])("hold for %s", async (_, text) => {
    expect(await objections(`${host}/lifecycle/create.ts`, text)).toContain("house/layers");
  });

  it.each([
    ['import { x } from "../lifecycle/create.ts";\nexport const y = x;\n'],
    ['import type { X } from "../lifecycle/create.ts";\nexport type Y = X;\n'],
  ])("name both rooms and the rule: %s", async (text) => {
    expect(await reasonOf(`${host}/session/session.ts`, text)).toBe(
      "lifecycle/ stands above session/, and a room imports only rooms below it (scripts/lint/rooms.mjs)",
    );
  });

  it.each(Object.entries(ORDERED))("have a row for every room of %s, and no other", (name, { rows }) => {
    const folders = readdirSync(path.join(root, "packages", name, "src"), { withFileTypes: true });
    const rooms = folders.filter((entry) => entry.isDirectory()).map((entry) => entry.name);
    expect(rows.flat().toSorted()).toEqual(rooms.toSorted());
  });

  it("find a cycle of imports", async () => {
    const file = "test/house/cycle/a.ts";
    expect(await objections(file, readFileSync(path.join(root, file), "utf8"), [])).toEqual(["import-x/no-cycle"]);
  });
});

describe("the folders", () => {
  it.each(Object.keys(ORDERED))("of %s lead to one another in no circle, types included", (name) => {
    expect(findFolderCycles(importsIn(path.join(root, "packages", name, "src")))).toEqual([]);
  });

  it("are in a circle if types lead back, also over a third one and below another", () => {
    expect(
      findFolderCycles([
        ["a/x.ts", "b/y.ts"],
        ["b/y.ts", "c/z.ts"],
        ["c/z.ts", "a/x.ts"],
        ["d/e/x.ts", "d/f/x.ts"],
        ["d/f/x.ts", "d/e/y.ts"],
        ["d/x.ts", "d/e/x.ts"],
        ["d/e/x.ts", "d/x.ts"],
        ["a/x.ts", "d/x.ts"],
      ]),
    ).toEqual([
      ["a", "b", "c"],
      ["d/e", "d/f"],
    ]);
    expect(importsIn(path.join(root, "test/house/cycle"))).toContainEqual(["a.ts", "b.ts"]);
  });
});

describe("the sources of time, chance and configuration", () => {
  it.each([
    ["the time", "export const now = () => Date.now();\n", "no-restricted-properties"],
    ["chance", "export const roll = () => Math.random();\n", "no-restricted-properties"],
    ["a timer", "export const wait = () => setTimeout(() => undefined, 1);\n", "no-restricted-globals"],
    [
      "a timer by import",
      'import { setTimeout } from "node:timers/promises";\nexport const wait = () => setTimeout(1);\n',
      "no-restricted-imports",
    ],
    ["the environment", "export const home = () => process.env;\n", "no-restricted-syntax"],
    ["the environment in brackets", 'export const home = () => process["env"];\n', "no-restricted-syntax"],
    [
      "the environment by import",
      'import { env } from "node:process";\nexport const home = env;\n',
      "no-restricted-syntax",
    ],
  ])("keep %s out of nouns, and let tests be", async (_, text, rule) => {
    expect(await objections(`${host}/lifecycle/expire.ts`, text)).toEqual([rule]);
    expect(await objections(`${host}/lifecycle/expire.test.ts`, text)).toEqual([]);
  });

  it("let config.ts read the environment and the clock tell the time", async () => {
    expect(await objections(`${host}/config.ts`, "export const home = () => process.env;\n")).toEqual([]);
    expect(await objections("packages/core/src/async/clock.ts", "export const now = () => Date.now();\n")).toEqual([]);
    expect(await objections(`${host}/lifecycle/expire.ts`, "export const s = AbortSignal.timeout(5);\n")).toEqual([]);
  });
});
