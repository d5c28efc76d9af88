import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createHarness, type Harness } from "../cli-harness.suite.ts";
import { createServices, newWorld, SnapshotKind, type World } from "@turnbox/client/fake";

const TERMINAL = { isTTY: true } as const;

let world: World;

let harness: Harness;

beforeEach(async () => {
  world = newWorld();
  harness = await createHarness(createServices(world));
});

afterEach(async () => {
  await harness[Symbol.asyncDispose]();
});

describe("turnbox log", () => {
  it("draws lines on a terminal that shows them, and ASCII on any other and elsewhere", async () => {
    const drawn = await harness.run(["log", "web"], { stdout: TERMINAL, variables: { LANG: "C.UTF-8" } });
    expect(drawn.stdout.split("\n").map((line) => line.slice(0, 5).trimEnd())).toEqual(["○", "├─○", "│ ○", "●", ""]);
    expect(drawn.stdout).toContain("← head");
    const plain = await harness.run(["log", "web"], { stdout: TERMINAL, variables: { LANG: "C" } });
    const piped = await harness.run(["log", "web"], { variables: { LANG: "C.UTF-8" } });
    for (const { stdout } of [plain, piped]) expect(stdout).toMatch(/^\*.*\n\|-\*/);
  });

  it("lets no name reach the terminal as a command", async () => {
    world.snapshots.list = [{ snapshotId: "s1", kind: SnapshotKind.NAMED, name: "a\u001b[2Jb" }];
    const { stdout } = await harness.run(["log", "web"]);
    expect(stdout).toContain("a\\u{001b}[2Jb");
    expect(stdout).not.toContain("\u001b");
  });
});
