import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { createHarness, type Harness } from "./cli-harness.suite.ts";
import { ChangeKind, createServices, newWorld, SnapshotKind, ToolsPolicy, type World } from "@turnbox/client/fake";

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

describe("turnbox fork", () => {
  it("prints the id of each child, made from the present files unless a snapshot is named", async () => {
    expect((await harness.run(["fork", "web"])).stdout).toBe("fleet:i1:child0\n");
    expect((await harness.run(["fork", "web", "-n", "2", "--from", "#2", "--label", "try=fix"])).stdout).toBe(
      "fleet:i1:child0\nfleet:i1:child1\n",
    );
    expect(world.forked).toMatchObject([
      { sandboxId: "fleet:i1:abc123", snapshotId: "", count: 1, labels: {} },
      { snapshotId: "s2", count: 2, labels: { try: "fix" } },
    ]);
    expect(world.forked[0]?.idempotencyKey).not.toBe("");
  });

  it("prints those that were made where others were not, and fails", async () => {
    world.room = 1;
    const ran = await harness.run(["fork", "web", "-n", "3"]);
    expect(ran).toMatchObject({ exitCode: 1, stdout: "fleet:i1:child0\n" });
    expect(ran.stderr).toMatch(/^2 of 3 were not made.*\nPOOL_FULL: the pool is full\nremedy: .+\n$/);
    const asJson = await harness.run(["fork", "web", "-n", "2", "--json"]);
    expect(asJson).toMatchObject({ exitCode: 1, stderr: "" });
    expect(asJson.json()).toMatchObject({
      sandboxId: "fleet:i1:abc123",
      children: [{ sandboxId: "fleet:i1:child0" }, { error: { reason: "POOL_FULL" } }],
    });
  });

  it.each(["0", "101", "-1", "x", "1.5"])("refuses to make %s of them, and sends nothing", async (count) => {
    expect((await harness.run(["fork", "web", `--count=${count}`])).exitCode).toBe(2);
    expect(harness.calls).toEqual([]);
  });
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

describe("turnbox repair", () => {
  it("says what was done", async () => {
    expect((await harness.run(["repair", "web"])).stdout).toBe(
      "fleet:i1:abc123 is active\n  mounted the files\\u{001b}[2J\n",
    );
    expect((await harness.run(["repair", "web", "--json"])).json()).toMatchObject({ state: "active", generation: 3 });
    expect(world.repaired).toEqual(["abc123", "abc123"]);
  });
});

describe("turnbox stats", () => {
  it("shows what a sandbox uses", async () => {
    const { stdout } = await harness.run(["stats", "web"]);
    expect(stdout).toContain("memory                  12.0 MiB of 512.0 MiB\n");
    expect(stdout).toContain("processor time          1.25 s\n");
    expect((await harness.run(["stats", "web", "--json"])).json()).toMatchObject({
      sandboxId: "fleet:i1:abc123",
      cpuTimeMs: 1250,
      pids: 3,
      spaceUsedBytes: 1_048_576,
    });
  });

  it("shows every host, with the server's token, and no host elsewhere", async () => {
    const { stdout } = await harness.run(["stats"]);
    expect(stdout).toMatch(/^HOST .*\ni0 +healthy +2\/9 .* 1\.0 GiB of 4\.0 GiB +ONLINE +3\.0 GiB of 4\.0 GiB\n$/);
    expect((await harness.run(["stats", "--json"])).json()).toMatchObject({
      hosts: [{ instanceId: "i0", status: "healthy", cpus: 2, loadAverage: 0.5, maxSessions: 9 }],
    });
    harness.calls.length = 0;
    const foreign = await harness.run(["stats", "--url", "https://box.example", "--token", "box"]);
    expect(foreign.stderr).toMatch(/^UNIMPLEMENTED: hosts are measured only where/);
    expect(harness.calls.filter(({ peer }) => peer === "host")).toEqual([]);
  });
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
