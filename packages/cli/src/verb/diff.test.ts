import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createHarness, type Harness } from "../cli-harness.suite.ts";
import { ChangeKind, createServices, newWorld, type World } from "@turnbox/client/fake";

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

describe("turnbox diff", () => {
  beforeEach(() => {
    world.changes = [
      { kind: ChangeKind.ADDED, path: "/workspace/a\u001b[2J", newSizeBytes: 2048n },
      {
        kind: ChangeKind.MODIFIED,
        path: "/workspace/b",
        oldSizeBytes: 10n,
        newSizeBytes: 12n,
        unifiedDiff: "--- a\n+++ b\n@@ -1,2 +1,2 @@\n same\n--- was\n+\u001b[31mis\n",
      },
      { kind: ChangeKind.REMOVED, path: "/workspace/c", oldSizeBytes: 1024n, binary: true },
      { kind: ChangeKind.RENAMED, path: "/workspace/e", oldPath: "/workspace/d", oldSizeBytes: 5n, newSizeBytes: 5n },
      { kind: ChangeKind.TYPE_CHANGED, path: "/workspace/f", diffTruncated: true },
    ];
  });

  it("compares the snapshot that the files continue from with the present ones", async () => {
    const ran = await harness.run(["diff", "web"]);
    expect(ran.exitCode).toBe(0);
    expect(ran.stdout).toContain("A  /workspace/a\\u{001b}[2J  (+2.0 KiB)\nM  /workspace/b  (10 B -> 12 B)\n");
    expect(ran.stdout).toContain("D  /workspace/c  (-1.0 KiB, binary)\nR  /workspace/d -> /workspace/e  (5 B)\n");
    expect(ran.stdout).toMatch(
      /\n5 changes: 1 added, 1 removed, 1 modified, 1 renamed, 1 of another type; \+1\.0 KiB\n$/,
    );
    expect(world.diffed[0]).toMatchObject({ fromSnapshotId: "s3", toSnapshotId: "", text: false });
  });

  it("takes both points by whatever names them, and passes its options on", async () => {
    await harness.run(["diff", "web", "1", "turn-0002", "--text", "--path", "/workspace", "--max-text", "2MiB"]);
    await harness.run(["diff", "web", "u1", "now"]);
    expect(world.diffed[0]).toMatchObject({
      fromSnapshotId: "s1",
      toSnapshotId: "s2",
      text: true,
      maxTextBytes: 2_097_152n,
      path: "/workspace",
    });
    expect(world.diffed.at(-1)).toMatchObject({ fromSnapshotId: "u1", toSnapshotId: "" });
  });

  it("counts lines by the hunks, and leaves every byte of the text where stdout is no terminal", async () => {
    const { stdout } = await harness.run(["diff", "web", "--text"]);
    expect(stdout).toContain("@@ -1,2 +1,2 @@\n same\n--- was\n+\u001b[31mis\n");
    expect(stdout).toMatch(/; \+1 -1 lines\n$/);
    expect(stdout).toContain("(the text is too long for one answer");
  });

  it("colours on a terminal, unless it shall not, and lets no content act on it", async () => {
    const { stdout } = await harness.run(["diff", "web", "--text"], { stdout: TERMINAL });
    expect(stdout).toContain("\u001b[32m+\\u{001b}[31mis\u001b[39m\n");
    expect(stdout).toContain("\u001b[33mM\u001b[39m  /workspace/b");
    const plain = await harness.run(["diff", "web", "--text"], { stdout: TERMINAL, variables: { NO_COLOR: "1" } });
    expect(plain.stdout).not.toContain("\u001b");
  });

  it("has every difference and their sum under --json", async () => {
    expect((await harness.run(["diff", "web", "--json"])).json()).toMatchObject({
      from: "s3",
      to: null,
      summary: { added: 1, removed: 1, modified: 1, renamed: 1, typeChanged: 1, sizeBytes: 1026 },
      changes: [
        { kind: "added", oldPath: null },
        {},
        { binary: true },
        { oldPath: "/workspace/d" },
        { kind: "type_changed" },
      ],
    });
  });

  it("says when nothing differs, and when there is nothing to compare with", async () => {
    world.changes = [];
    expect((await harness.run(["diff", "web"])).stdout).toBe("no differences\n");
    world.snapshots.list = [];
    const ran = await harness.run(["diff", "web"]);
    expect(ran.exitCode).toBe(4);
    expect(ran.stderr).toMatch(/remedy: Seal a turn with `turnbox turn web`/);
  });
});
