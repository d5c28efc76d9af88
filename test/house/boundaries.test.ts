import { readFileSync } from "node:fs";
import path from "node:path";
import { beforeAll, describe, expect, it } from "@jest/globals";
import { ESLint } from "eslint";
import tseslint from "typescript-eslint";

const root = path.resolve(import.meta.dirname, "../..");
const host = "packages/sandbox-host/src";
const fleet = "packages/orchestrator/src";

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

const imports = (specifier: string) => `import { x } from "${specifier}";\nexport const y = x;\n`;

describe("the boundaries between folders", () => {
  it.each([
    ["a noun the edge", `${host}/session/create.ts`, "../rpc/convert.ts"],
    ["a noun the composition", `${host}/session/create.ts`, "../compose.ts"],
    ["a noun main", `${fleet}/instance/launch.ts`, "../main.ts"],
    ["rpc the composition", `${host}/rpc/session-service.ts`, "../compose.ts"],
    ["the composition main", `${fleet}/compose.ts`, "./main.ts"],
    ["a noun an adapter of storage", `${host}/turn/rollback.ts`, "../storage/zfs/zfs-storage.ts"],
    ["rpc an adapter of runtime", `${host}/rpc/tool-service.ts`, "../runtime/gvisor/gvisor-runtime.ts"],
    ["main an adapter", `${host}/main.ts`, "./storage/zfs/zfs-storage.ts"],
    ["a port its own adapter", `${host}/storage/storage.ts`, "./local-disk/local-disk-storage.ts"],
    ["an adapter another one", `${host}/storage/zfs/zfs-storage.ts`, "../local-disk/copy.ts"],
    ["product code a fake", `${host}/session/create.ts`, "../storage/fake/fake-storage.ts"],
    ["a noun a provisioner", `${fleet}/control/fleet/fleet-control.ts`, "../../instance/ec2/ec2-provisioner.ts"],
    ["a noun a store", `${fleet}/instance/launch.ts`, "../store/sqlite/sqlite-store.ts"],
    ["rpc the host client", `${fleet}/rpc/control-service.ts`, "../control/node/node-control.ts"],
    ["a test of a noun a real adapter", `${host}/turn/rollback.test.ts`, "../storage/zfs/zfs-storage.ts"],
    ["a port the noun that uses it", `${host}/storage/storage.ts`, "../session/session.ts"],
    ["a noun the protocol", `${host}/session/create.ts`, "@turnbox/protocol/turnbox/host/v1/session_pb"],
    [
      "another file of core the protocol",
      "packages/core/src/error/reason.ts",
      "@turnbox/protocol/turnbox/common/v1/error_pb",
    ],
    ["core a service", "packages/core/src/id/session-id.ts", "@turnbox/sandbox-host"],
    ["core the client", "packages/core/src/id/session-id.ts", "@turnbox/client"],
    ["the client a service", "packages/client/src/client.ts", "@turnbox/orchestrator"],
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
    ["a package the files of another", `${host}/session/create.ts`, "../../../core/src/index.ts"],
    ["a package the build of another", `${host}/session/create.ts`, "@turnbox/core/dist/index.js"],
    ["a package a script", `${host}/session/create.ts`, "../../../../scripts/bootstrap/layout.mjs"],
  ])("do not let %s in: %s from %s", async (_, file, specifier) => {
    expect(await objections(file, imports(specifier))).toEqual(["house/layers"]);
  });

  it.each([
    ["main the composition", `${host}/main.ts`, "./compose.ts"],
    ["the composition an adapter", `${host}/compose.ts`, "./storage/zfs/zfs-storage.ts"],
    ["the composition rpc", `${fleet}/compose.ts`, "./rpc/control-service.ts"],
    ["rpc a noun", `${host}/rpc/session-service.ts`, "../session/create.ts"],
    ["rpc the protocol", `${host}/rpc/convert.ts`, "@turnbox/protocol/turnbox/host/v1/session_pb"],
    [
      "the host client the protocol",
      `${fleet}/control/node/node-control.ts`,
      "@turnbox/protocol/turnbox/host/v1/session_pb",
    ],
    [
      "the wire form of errors the protocol",
      "packages/core/src/error/wire.ts",
      "@turnbox/protocol/turnbox/common/v1/error_pb",
    ],
    ["the client the protocol", "packages/client/src/client.ts", "@turnbox/protocol/turnbox/host/v1/session_pb"],
    ["the command line the client", "packages/cli/src/verb/turn.ts", "@turnbox/client"],
    ["the command line what the client shares", "packages/cli/src/verb/turn.ts", "@turnbox/client/internal"],
    ["the command line the agents", "packages/cli/src/verb/mcp.ts", "@turnbox/agents/mcp"],
    ["agents the client", "packages/agents/src/mcp/workspace.ts", "@turnbox/client"],
    ["a test of agents services in memory", "packages/agents/src/mcp/x.test.ts", "@turnbox/client/fake"],
    ["a noun a port", `${host}/session/create.ts`, "../storage/storage.ts"],
    ["a noun another noun", `${host}/turn/rollback.ts`, "../session/session.ts"],
    ["an adapter its port", `${host}/storage/zfs/zfs-storage.ts`, "../storage.ts"],
    ["an adapter what adapters share", `${host}/runtime/gvisor/exec.ts`, "../execution/relay-output.ts"],
    ["an adapter itself", `${host}/runtime/gvisor/exec/slot.ts`, "../control-socket.ts"],
    ["a contract test its adapter", `${host}/storage/zfs/zfs-storage.contract.test.ts`, "./zfs-storage.ts"],
    ["a test of a noun a fake", `${host}/session/create.test.ts`, "../storage/fake/fake-storage.ts"],
    ["a service core", `${fleet}/instance/launch.ts`, "@turnbox/core"],
    ["an end-to-end test the client", "test/e2e/first.test.ts", "@turnbox/client"],
  ])("let %s in: %s from %s", async (_, file, specifier) => {
    expect(await objections(file, imports(specifier))).toEqual([]);
  });

  it.each([
    ["a type import", 'import type { X } from "../rpc/convert.ts";\nexport type Y = X;\n'],
    ["a re-export", 'export { x } from "../rpc/convert.ts";\n'],
    ["a re-export of everything", 'export * from "../rpc/convert.ts";\n'],
    ["a dynamic import", 'export const load = () => import("../rpc/convert.ts");\n'],
    ["a detour in the path", imports("./../session/../rpc/convert.ts")],
  ])("hold for %s", async (_, text) => {
    expect(await objections(`${host}/session/create.ts`, text)).toContain("house/layers");
  });

  it("find a cycle of imports", async () => {
    const file = "test/house/cycle/a.ts";
    expect(await objections(file, readFileSync(path.join(root, file), "utf8"), [])).toEqual(["import-x/no-cycle"]);
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
    expect(await objections(`${host}/session/expire.ts`, text)).toEqual([rule]);
    expect(await objections(`${host}/session/expire.test.ts`, text)).toEqual([]);
  });

  it("let config.ts read the environment and the clock tell the time", async () => {
    expect(await objections(`${host}/config.ts`, "export const home = () => process.env;\n")).toEqual([]);
    expect(await objections("packages/core/src/clock/clock.ts", "export const now = () => Date.now();\n")).toEqual([]);
    expect(await objections(`${host}/session/expire.ts`, "export const s = AbortSignal.timeout(5);\n")).toEqual([]);
  });
});
