import { mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it, jest } from "@jest/globals";
import {
  type CommandRunner,
  createChildCommandRunner,
  createLog,
  type RunningCommand,
  SandboxError,
} from "@turnbox/core";
import { createManualClock } from "@turnbox/core/testing";
import { SIGNAL, startTestHost, type TestHost } from "../../compose.suite.ts";
import type { Session } from "../../session/session.ts";
import type { Storage } from "../../storage/storage.ts";
import { createDiffSnapshots, type DiffLimits, type DiffRequest } from "./diff-snapshots.ts";

const ALL: DiffRequest = { fromSnapshotId: "", toSnapshotId: "", path: "/", text: null, answerId: null };
const BROKEN = new SandboxError("STORAGE_UNAVAILABLE", "broken by the test");

async function seal(test: TestHost, session: Session): Promise<string> {
  const request = { turnKey: "", outcome: "succeeded", expectedGeneration: undefined } as const;
  const { snapshot } = await test.host.completeTurn(session, request, { signal: SIGNAL });
  if (snapshot === null) throw new Error("nothing was sealed");
  return snapshot.id;
}

/** A session with a snapshot, and its files to change. */
async function prepare(test: TestHost) {
  const session = await test.create();
  const { path } = await test.storage.mountHead(session.head, { signal: SIGNAL });
  const at = (name: string): string => join(path, "workspace", name);
  mkdirSync(join(path, "workspace"), { recursive: true });
  writeFileSync(at("a"), "one\n");
  writeFileSync(at("b"), "one\n");
  return { session, at, first: await seal(test, session) };
}

/** The use case with parts of the test's own choice. */
function create(
  test: TestHost,
  more: { runner?: CommandRunner; limits?: Partial<DiffLimits>; storage?: Storage } = {},
) {
  const clock = createManualClock();
  const { storage = test.storage } = more;
  const log = createLog({ name: "test", level: "silent", to: { write: () => undefined } });
  const runner = more.runner ?? createChildCommandRunner();
  const diff = createDiffSnapshots({
    storage,
    records: test.host.records,
    runner,
    clock,
    log,
    nodePath: process.execPath,
    ...(more.limits === undefined ? {} : { limits: more.limits }),
  });
  return {
    clock,
    diff: (session: Session, request: Partial<DiffRequest>, signal = SIGNAL) =>
      diff(session, { ...ALL, ...request }, { signal }),
  };
}

const show = ({ changes }: { readonly changes: readonly { readonly kind: string; readonly path: string }[] }) =>
  changes.map(({ kind, path }) => `${kind} ${path}`);

/** A runner that remembers what it started. */
function watched(): { readonly runner: CommandRunner; readonly started: RunningCommand[] } {
  const started: RunningCommand[] = [];
  const real = createChildCommandRunner();
  const runner: CommandRunner = {
    run: (spec, options) => real.run(spec, options),
    start: async (spec, options) => {
      const command = await real.start(spec, options);
      started.push(command);
      return command;
    },
  };
  return { runner, started };
}

// Each comparison starts a process.
jest.setTimeout(60_000);

describe("diffSnapshots", () => {
  it("compares two snapshots, either way round, and a snapshot with now", async () => {
    await using test = await startTestHost();
    const { session, at, first } = await prepare(test);
    writeFileSync(at("a"), "two\n");
    const second = await seal(test, session);
    rmSync(at("b"));
    const { diff } = create(test);
    const text = { maxBytes: 10_000 };
    expect(show(await diff(session, { fromSnapshotId: first, toSnapshotId: second }))).toEqual([
      "modified /workspace/a",
    ]);
    expect(show(await diff(session, { fromSnapshotId: first }))).toEqual([
      "modified /workspace/a",
      "removed /workspace/b",
    ]);
    expect(show(await diff(session, { fromSnapshotId: first, path: "/etc" }))).toEqual([]);
    expect(show(await diff(session, { fromSnapshotId: first, toSnapshotId: first }))).toEqual([]);
    const back = await diff(session, { fromSnapshotId: second, toSnapshotId: first, text });
    expect(back.changes).toMatchObject([
      {
        kind: "modified",
        oldSizeBytes: 4,
        newSizeBytes: 4,
        unifiedDiff: "--- a/workspace/a\n+++ b/workspace/a\n@@ -1,1 +1,1 @@\n-two\n+one\n",
      },
    ]);
  });

  it("looks both points up before it makes anything (D1)", async () => {
    await using test = await startTestHost();
    const { session, first } = await prepare(test);
    const other = await prepare(test);
    const { runner, started } = watched();
    const { diff } = create(test, { runner });
    const view = test.storage.faults.holdNext("openView");
    for (const request of [
      { fromSnapshotId: "snap-nothing" },
      { fromSnapshotId: first, toSnapshotId: "snap-nothing" },
      { fromSnapshotId: first, toSnapshotId: other.first },
    ])
      await expect(diff(session, request)).rejects.toMatchObject({ reason: "SNAPSHOT_NOT_FOUND" });
    view.release();
    expect(started).toEqual([]);
  });

  it("is refused where the storage has no snapshots", async () => {
    await using test = await startTestHost();
    const { session, first } = await prepare(test);
    const { diff } = create(test, { storage: { ...test.storage, capabilities: { snapshots: "unsupported" } } });
    await expect(diff(session, { fromSnapshotId: first })).rejects.toMatchObject({ reason: "SNAPSHOTS_NOT_AVAILABLE" });
  });

  it("works while a session is paused, and is refused while it is being destroyed", async () => {
    await using test = await startTestHost();
    const { session, at, first } = await prepare(test);
    const { diff } = create(test);
    writeFileSync(at("a"), "two\n");
    await session.commit((row) => ({ ...row, phase: { kind: "paused", sinceMs: 0, cause: "request" } }));
    expect(show(await diff(session, { fromSnapshotId: first }))).toEqual(["modified /workspace/a"]);
    await session.commit((row) => ({ ...row, phase: { kind: "failed", message: "lost" } }));
    expect(show(await diff(session, { fromSnapshotId: first }))).toEqual(["modified /workspace/a"]);
    await session.commit((row) => ({ ...row, phase: { kind: "destroying", sinceMs: 0 } }));
    await expect(diff(session, { fromSnapshotId: first })).rejects.toMatchObject({ reason: "SESSION_DESTROYING" });
  });

  it("lets go of its views whatever fails: afterwards the snapshot can be destroyed", async () => {
    await using test = await startTestHost();
    const { session, at, first } = await prepare(test);
    const { diff } = create(test);
    writeFileSync(at("a"), "two\n");
    test.storage.faults.failNext("changedPaths", { error: BROKEN });
    await expect(diff(session, { fromSnapshotId: first })).rejects.toBe(BROKEN);
    const broken = create(test, { limits: { maxChanges: 0 } });
    await expect(broken.diff(session, { fromSnapshotId: first })).rejects.toMatchObject({
      reason: "INVALID_ARGUMENT",
      message: expect.stringContaining("more than 0 changes"),
    });
    const names = await test.storage.listSnapshots(session.row.token, { signal: SIGNAL });
    expect(names).toHaveLength(1);
    await test.storage.destroySnapshot({ token: session.row.token, name: names[0]?.name ?? "" }, { signal: SIGNAL });
  });

  it("ends the comparing process at the deadline and with the caller", async () => {
    await using test = await startTestHost();
    const { session, first } = await prepare(test);
    const { runner, started } = watched();
    // A program that answers nothing, for ever.
    const stuck: CommandRunner = {
      run: (spec, options) => runner.run(spec, options),
      start: ({ deadlineMs }, options) => runner.start({ command: "sleep", args: ["1000"], deadlineMs }, options),
    };
    const late = create(test, { runner: stuck, limits: { deadlineMs: 1 } });
    await expect(late.diff(session, { fromSnapshotId: first })).rejects.toMatchObject({ reason: "DEADLINE_EXCEEDED" });
    const caller = new AbortController();
    const leaving = create(test, { runner: stuck }).diff(session, { fromSnapshotId: first }, caller.signal);
    while (started.length < 2) await new Promise((resolve) => void setImmediate(resolve));
    caller.abort(new SandboxError("CANCELLED", "the caller left"));
    await expect(leaving).rejects.toMatchObject({ reason: "CANCELLED" });
    for (const { ended } of started) expect(await ended).toMatchObject({ kind: "signaled" });
  });

  it("says what a program that dies without an answer is: a failure of ours", async () => {
    await using test = await startTestHost();
    const { session, first } = await prepare(test);
    const { runner } = watched();
    const dying: CommandRunner = {
      run: (spec, options) => runner.run(spec, options),
      start: ({ deadlineMs }, options) => runner.start({ command: "false", args: [], deadlineMs }, options),
    };
    const { diff } = create(test, { runner: dying });
    await expect(diff(session, { fromSnapshotId: first })).rejects.toMatchObject({
      reason: "INTERNAL",
      admitted: "no",
    });
  });

  it("keeps an answer for a minute: pages of now stay pages of one answer", async () => {
    await using test = await startTestHost();
    const { session, at, first } = await prepare(test);
    const { runner, started } = watched();
    const { diff, clock } = create(test, { runner });
    writeFileSync(at("a"), "two\n");
    const answer = await diff(session, { fromSnapshotId: first });
    writeFileSync(at("c"), "new\n");
    await clock.advance(40_000);
    expect(await diff(session, { fromSnapshotId: first, answerId: answer.id })).toBe(answer);
    await clock.advance(40_000);
    expect(await diff(session, { fromSnapshotId: first, answerId: answer.id })).toBe(answer);
    expect(started).toHaveLength(1);
    expect(show(await diff(session, { fromSnapshotId: first }))).toEqual([
      "modified /workspace/a",
      "added /workspace/c",
    ]);
    const refused = { reason: "INVALID_ARGUMENT", metadata: { field: "page.page_token" } };
    const elsewhere = diff(session, { fromSnapshotId: first, answerId: answer.id, path: "/workspace" });
    await expect(elsewhere).rejects.toMatchObject(refused);
    await clock.advance(60_001);
    await expect(diff(session, { fromSnapshotId: first, answerId: answer.id })).rejects.toMatchObject(refused);
  });

  it("works out two snapshots once a minute, and the same again when it was forgotten", async () => {
    await using test = await startTestHost();
    const { session, at, first } = await prepare(test);
    renameSync(at("a"), at("z"));
    const second = await seal(test, session);
    const { runner, started } = watched();
    const { diff, clock } = create(test, { runner });
    const request = { fromSnapshotId: first, toSnapshotId: second };
    const answer = await diff(session, request);
    expect(await diff(session, request)).toBe(answer);
    expect(started).toHaveLength(1);
    await clock.advance(60_001);
    expect(await diff(session, { ...request, answerId: answer.id })).toEqual(answer);
    expect(started).toHaveLength(2);
  });
});
