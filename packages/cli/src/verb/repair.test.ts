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

describe("turnbox repair", () => {
  it("says what was done", async () => {
    expect((await harness.run(["repair", "web"])).stdout).toBe(
      "fleet:i1:abc123 is active\n  mounted the files\\u{001b}[2J\n",
    );
    expect((await harness.run(["repair", "web", "--json"])).json()).toMatchObject({ state: "active", generation: 3 });
    expect(world.repaired).toEqual(["abc123", "abc123"]);
  });
});
