import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createHarness, type Harness } from "../cli-harness.suite.ts";
import { createServices, newWorld, SnapshotKind, ToolsPolicy, type World } from "@turnbox/client/fake";

let world: World;

let harness: Harness;

beforeEach(async () => {
  world = newWorld();
  harness = await createHarness(createServices(world));
});

afterEach(async () => {
  await harness[Symbol.asyncDispose]();
});

describe("turnbox undo", () => {
  it("goes back to what the last rollback took away, and says so", async () => {
    world.snapshots.list = [...world.snapshots.list, { snapshotId: "u7", kind: SnapshotKind.UNDO }];
    const ran = await harness.run(["undo", "web", "--tools", "wait"]);
    expect(ran.exitCode).toBe(0);
    expect(ran.stdout).toMatch(
      /^the files are as they were before the rollback .* \(u7\); redo with: turnbox undo web\n$/,
    );
    expect(world.rolledBackTo).toEqual(["u7"]);
    expect(world.toolsPolicies).toEqual([ToolsPolicy.WAIT]);
  });

  it("says when there is nothing to undo, and where to look", async () => {
    world.snapshots.list = [];
    const ran = await harness.run(["undo", "web"]);
    expect(ran).toMatchObject({ exitCode: 4, stdout: "" });
    expect(ran.stderr).toMatch(/^SNAPSHOT_NOT_FOUND: there is no rollback to undo.*\nremedy: `turnbox log web` shows/);
    expect(world.rolledBackTo).toEqual([]);
  });
});
