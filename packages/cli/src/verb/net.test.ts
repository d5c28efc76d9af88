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

describe("turnbox net, port and create --allow-net", () => {
  it("allows, denies and turns off", async () => {
    await harness.run(["net", "web", "allow", "a.example", "b.example"]);
    await harness.run(["net", "web", "deny", "a.example"]);
    expect(world.network.policy).toMatchObject({
      allowOutbound: true,
      allowList: ["b.example"],
      denyList: ["a.example"],
      required: true,
    });
    expect((await harness.run(["net", "web", "off"])).stdout).toContain("out: nowhere\n");
  });

  it("never opens everything by denying the last destination, nor narrows by allowing one more", async () => {
    await harness.run(["net", "web", "allow", "a.example"]);
    await harness.run(["net", "web", "deny", "a.example"]);
    expect(world.network.policy).toMatchObject({ allowOutbound: false, allowList: [] });
    await harness.run(["net", "web", "allow"]);
    await harness.run(["net", "web", "allow", "b.example"]);
    expect(world.network.policy).toMatchObject({ allowOutbound: true, allowList: [] });
  });

  it("shows refusals without letting them act upon the terminal", async () => {
    const { stdout } = await harness.run(["net", "web"]);
    expect(stdout).toContain("evil.example\\u{001b}[2J:443  (default)");
    expect(stdout).toContain("closed by the host's settings: 10.0.0.0/8\n");
  });

  it("refuses a deny of nothing and unknown actions", async () => {
    expect((await harness.run(["net", "web", "deny"])).exitCode).toBe(2);
    expect((await harness.run(["net", "web", "open"])).exitCode).toBe(2);
  });

  it("prints the way to a port", async () => {
    expect((await harness.run(["port", "web", "8000", "--json"])).json()).toMatchObject({
      url: "http://127.0.0.1:9000/8000",
      token: "port-token",
      expiresAt: null,
    });
  });

  it("makes sandboxes with a way out, to some destinations or to all", async () => {
    await harness.run(["create", "--allow-net", "a.example", "--allow-net", "10.0.0.0/8"]);
    await harness.run(["create", "--allow-net"]);
    await harness.run(["create"]);
    expect(world.network.created).toMatchObject([
      { allowOutbound: true, allowList: ["a.example", "10.0.0.0/8"], required: true },
      { allowOutbound: true, allowList: [] },
      undefined,
    ]);
  });
});
