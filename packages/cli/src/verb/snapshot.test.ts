import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createHarness, type Harness } from "../cli-harness.suite.ts";
import { createServices, newWorld, SnapshotKind, type World } from "@turnbox/client/fake";

let world: World;

let harness: Harness;

beforeEach(async () => {
  world = newWorld();
  harness = await createHarness(createServices(world));
});

afterEach(async () => {
  await harness[Symbol.asyncDispose]();
});

describe("turnbox snapshot", () => {
  it("takes one with and without a name", async () => {
    expect((await harness.run(["snapshot", "web", "before the upgrade"])).stdout).toBe("n9 before the upgrade\n");
    expect((await harness.run(["snapshot", "web", "--json"])).json()).toMatchObject({
      sandboxId: "fleet:i1:abc123",
      snapshotId: "n9",
      kind: "named",
      turnNumber: null,
    });
    expect(world.snapshots.created).toEqual(["before the upgrade", ""]);
  });

  it("removes one by whatever names it", async () => {
    world.snapshots.list = [
      ...world.snapshots.list,
      { snapshotId: "n1", kind: SnapshotKind.NAMED, name: "before the upgrade" },
    ];
    expect(await harness.run(["snapshot", "rm", "web", "before the upgrade"])).toMatchObject({
      exitCode: 0,
      stdout: "removed n1\n",
    });
    expect((await harness.run(["snapshot", "rm", "web", "turn-0002", "--json"])).json()).toEqual({
      sandboxId: "fleet:i1:abc123",
      snapshotId: "s2",
      removed: true,
    });
    expect((await harness.run(["snapshot", "rm", "web", "nothing"])).exitCode).toBe(4);
    expect(world.snapshots.deleted).toEqual(["n1", "s2"]);
  });
});
