import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createServices, type FakeSandbox, newSandbox, newWorld, routeSandbox, type World } from "@turnbox/client/fake";
import { createHarness, type Harness } from "./cli-harness.suite.ts";

let world: World;
let sandbox: FakeSandbox;
let harness: Harness;
beforeEach(async () => {
  world = newWorld();
  sandbox = newSandbox();
  sandbox.files.set("/a", { content: Buffer.from("a"), mode: 0o644 });
  sandbox.output = "out";
  sandbox.end();
  const services = createServices(world);
  harness = await createHarness({
    ...services,
    host: (router) => {
      services.host(router);
      routeSandbox(router, sandbox);
    },
  });
});
afterEach(async () => {
  await harness[Symbol.asyncDispose]();
});

/** The verbs that talk to a sandbox, each with the call that meets a service that is restarting. */
const VERBS: readonly (readonly [method: string, ...args: string[]])[] = [
  ["ExecuteToolStream", "exec", "web", "--no-stdin", "--json", "--", "ls"],
  ["ListTools", "tools", "web"],
  ["ExecuteTool", "tool", "web", "read_file", "path=a"],
  ["TurnComplete", "turn", "web"],
  ["CreateSnapshot", "snapshot", "web"],
  ["DeleteSnapshot", "snapshot", "rm", "web", "s1"],
  ["ListSnapshots", "log", "web"],
  ["DiffSnapshots", "diff", "web"],
  ["RollbackSession", "rollback", "web", "1"],
  ["RollbackSession", "undo", "web"],
  ["ForkSandbox", "fork", "web"],
  ["CreateSandbox", "create"],
  ["PauseSandbox", "pause", "web"],
  ["ResumeSandbox", "resume", "web"],
  ["ExtendSession", "extend", "web", "--none"],
  ["RepairSession", "repair", "web"],
  ["DestroySandbox", "rm", "web", "--no-wait"],
  ["GetSessionStats", "stats", "web"],
  ["GetNetworkPolicy", "net", "web"],
  ["UpdateNetworkPolicy", "net", "web", "off"],
  ["CreatePortAccess", "port", "web", "80"],
  ["ConnectSandbox", "connect", "web"],
  ["ListSandboxes", "ls"],
  ["ListTemplates", "template", "ls"],
  ["ReadFile", "cat", "web", "/a"],
  ["ListProcesses", "ps", "web"],
  ["ReadOutput", "logs", "web", "1a", "-f"],
  ["LaunchProcess", "run", "web", "-d", "--", "sleep"],
  ["ListInstances", "fleet", "ls"],
  ["CordonInstance", "fleet", "cordon", "i0"],
  ["UncordonInstance", "fleet", "uncordon", "i0"],
];

describe("every verb gets over a service that restarts", () => {
  it.each(VERBS)("whose answer to %s is lost: %s %s", async (method, ...args) => {
    harness.faults.set(method, ["lost", "lost"]);
    const ran = await harness.run(args);
    expect(ran).toMatchObject({ exitCode: 0, stderr: "" });
    // A tool call whose stream broke is joined by another method.
    expect(harness.faults.get(method)?.length).toBeLessThan(2);
  });

  it("sends a turn under one key, however often it is tried", async () => {
    harness.faults.set("TurnComplete", ["lost"]);
    await harness.run(["turn", "web"]);
    await harness.run(["turn", "web", "--key", "step-7"]);
    const keys = harness.calls
      .filter(({ method }) => method === "TurnComplete")
      .map(({ message }) => (message as { readonly turnKey: string }).turnKey);
    expect(keys[0]).toMatch(/^[0-9a-f-]{36}$/);
    expect(keys).toEqual([keys[0], keys[0], "step-7"]);
  });
});

describe("the sandbox that is meant", () => {
  const methods = (): readonly string[] => harness.calls.map(({ method }) => method);

  it.each(["web", "abc123"])("is asked for by its name or the end of its id, without the list: %s", async (id) => {
    expect((await harness.run(["rollback", id, "1"])).exitCode).toBe(0);
    expect(methods()).toEqual(["GetSandbox", "ConnectSandbox", "ListSnapshots", "RollbackSession"]);
  });

  it("is looked for in the list by the beginning of its id only, and not at all by a full id", async () => {
    expect((await harness.run(["turn", "abc"])).exitCode).toBe(0);
    expect(methods()).toContain("ListSandboxes");
    harness.calls.length = 0;
    expect((await harness.run(["turn", "fleet:i1:abc123"])).exitCode).toBe(0);
    expect(methods()).toEqual(["ConnectSandbox", "TurnComplete"]);
  });
});
