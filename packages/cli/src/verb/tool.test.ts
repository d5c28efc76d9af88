import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createHarness, type Harness } from "../cli-harness.suite.ts";
import { createServices, type FakeSandbox, newSandbox, newWorld, routeSandbox, type World } from "@turnbox/client/fake";

let world: World;

let sandbox: FakeSandbox;

let harness: Harness;

beforeEach(async () => {
  world = newWorld();
  sandbox = newSandbox();
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

describe("turnbox tools and tool", () => {
  it("lists tools, needed parameters first", async () => {
    expect((await harness.run(["tools", "web"])).stdout).toMatch(/\nread_file +no +Read +path \[limit\]\n$/);
    expect((await harness.run(["tools", "web", "--json"])).json()).toMatchObject({
      tools: [{ name: "read_file", inputSchema: { required: ["path"] } }],
    });
  });

  it("takes parameters as words by the schema's types and as JSON", async () => {
    const args = ["tool", "web", "Read", "--params", '{"path": "a", "other": [1]}', "--call-id", "c1"];
    expect(await harness.run([...args, "limit=5", "path=7"])).toMatchObject({ exitCode: 0, stdout: "done\n" });
    expect(world.executed).toMatchObject([
      { toolCallId: "c1", toolName: "Read", params: { path: "7", limit: 5, other: [1] } },
    ]);
    expect((await harness.run(["tool", "web", "Read", "limit=x"])).exitCode).toBe(2);
    expect((await harness.run(["tool", "web", "Read", "--params", "[]"])).exitCode).toBe(2);
  });

  it("passes the exit code of what ran", async () => {
    world.exit = { ...world.exit, exitCode: 9 };
    expect((await harness.run(["tool", "web", "bash", "cmd=exit 9"])).exitCode).toBe(9);
  });
});
