import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createHarness, type Harness } from "../cli-harness.suite.ts";
import { createServices, newWorld, type World } from "@turnbox/client/fake";

let world: World;

let harness: Harness;

beforeEach(async () => {
  world = newWorld();
  harness = await createHarness(createServices(world));
});

afterEach(async () => {
  await harness[Symbol.asyncDispose]();
});

describe("turnbox extend", () => {
  it("moves the end, or removes it", async () => {
    expect((await harness.run(["extend", "web", "--ttl", "2h"])).stdout).toBe(
      "fleet:i1:abc123 ends at 2026-01-01T14:00:00.000Z\n",
    );
    expect((await harness.run(["extend", "web", "--none", "--json"])).json()).toEqual({
      sandboxId: "fleet:i1:abc123",
      expiresAt: null,
    });
    expect(world.extended.map(({ ttl }) => ttl?.seconds)).toEqual([7200n, undefined]);
  });

  it.each([[[]], [["--ttl", "1h", "--none"]], [["--ttl", "soon"]]])(
    "refuses %j, and sends nothing",
    async (options) => {
      expect((await harness.run(["extend", "web", ...options])).exitCode).toBe(2);
      expect(harness.calls).toEqual([]);
    },
  );
});
