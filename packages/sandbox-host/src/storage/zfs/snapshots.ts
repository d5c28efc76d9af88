import { SandboxError } from "@turnbox/core";
import {
  checkHead,
  checkMarks,
  checkNewSnapshot,
  checkSnapshot,
  checkToken,
  headNotFound,
  isViewSnapshot,
  sessionNotFound,
  snapshotInUse,
} from "../names.ts";
import type { HeadRef, Marks, SnapshotInfo, SnapshotRef, StorageCall } from "../storage.ts";
import type { Dataset, MarkedDataset } from "./datasets.ts";
import { storageError } from "./failure.ts";
import { generationOf, shortName } from "./layout.ts";
import { toProperties } from "./marks.ts";
import { findSessionDataset } from "./session-dataset.ts";
import type { ZfsPool } from "./zfs-pool.ts";

/** What deleting needs to work, as a share of the outer quota. */
const OUTER_QUOTA_MARGIN = 1 / 64;

/** Whether the outer quota has room for a snapshot of a head. */
export type Room = "enough" | "none";

/**
 * What a seal needs before the snapshot: the flush, a child with a deadline, without which what the sandbox wrote to mapped
 * memory is missing; and whether there is room.
 */
export async function prepareSeal(pool: ZfsPool, head: HeadRef, signal: AbortSignal): Promise<Room> {
  checkHead(head);
  const [room] = await Promise.all([findRoom(pool, head, signal), flush(pool, head, signal)]);
  return room;
}

/** Takes the snapshot. Marks are set by `zfs snapshot` itself, so a snapshot without its marks is never seen. */
export async function seal(
  pool: ZfsPool,
  head: HeadRef,
  options: StorageCall & { readonly name: string; readonly marks: Marks; readonly room: () => Promise<Room> },
): Promise<void> {
  const { name, marks, signal } = options;
  checkHead(head);
  checkNewSnapshot({ token: head.token, name });
  checkMarks(marks);
  const { zfs, layout, datasets } = pool;
  const dataset = `${layout.head(head)}@${name}`;
  if ((await options.room()) === "none") {
    if ((await datasets.find(dataset, signal)) === undefined) throw spaceExhausted();
    return;
  }
  const args = ["snapshot", ...toProperties(layout.home, marks), dataset];
  const isDone = async (probe: AbortSignal): Promise<boolean> => (await datasets.find(dataset, probe)) !== undefined;
  const outcome = await zfs.change({ program: "zfs", args, doing: "taking a snapshot", isDone }, signal);
  if (outcome.kind === "refused" && outcome.failure !== "exists") {
    if (outcome.failure === "not-found") throw headNotFound(head);
    throw outcome.failure === "quota" ? spaceExhausted() : storageError("taking a snapshot", outcome);
  }
  // A snapshot of this name that is another home's is an error.
  if (outcome.kind === "refused") await datasets.find(dataset, signal);
  const origin = { kind: "snapshot", snapshot: { token: head.token, name } } as const;
  pool.origins.note(origin, { snapshot: dataset, referencedBytes: undefined });
}

/** Writes out what the sandbox has written to a head, mapped memory included. */
export async function flush(
  { zfs, layout, mounts, limits }: ZfsPool,
  head: HeadRef,
  signal: AbortSignal,
): Promise<void> {
  const path = layout.headMount(head);
  // What is not mounted has been flushed by its unmount.
  if (!mounts.isMounted({ dataset: layout.head(head), path })) return;
  await zfs.read(
    "flushing a head",
    { program: "sync", args: ["-f", "--", path], deadlineMs: limits.flushDeadlineMs },
    signal,
  );
}

/**
 * Snapshots take from the outer quota, and once it is full the agent cannot even delete. zfs takes a snapshot all the
 * same, so the refusal is made here, while the head can still be rewritten as a whole.
 */
async function findRoom(pool: ZfsPool, head: HeadRef, signal: AbortSignal): Promise<Room> {
  const { datasets, layout, limits } = pool;
  const bound = await findSessionDataset(pool, head.token, signal);
  if (bound === undefined) throw headNotFound(head);
  if (bound.quotaBytes === 0) return "enough";
  const session = await datasets.find(layout.session(head.token), signal);
  if (session === undefined) throw headNotFound(head);
  const neededBytes = session.quotaBytes * (1 / limits.quotaFactor + OUTER_QUOTA_MARGIN);
  return session.quotaBytes - session.usedBytes < neededBytes ? "none" : "enough";
}

function spaceExhausted(): SandboxError {
  return new SandboxError("SNAPSHOT_SPACE_EXHAUSTED", "the session's files and snapshots use up its outer quota");
}

export async function listSnapshots(
  { datasets, layout }: ZfsPool,
  token: string,
  { signal }: StorageCall,
): Promise<readonly SnapshotInfo[]> {
  checkToken(token);
  const tree = await datasets.tree(layout.session(token), signal);
  if (tree.length === 0) throw sessionNotFound();
  return tree
    .filter(({ kind, name }) => kind === "snapshot" && !isViewSnapshot(shortName(name)))
    .map((snapshot) => toSnapshotInfo(token, snapshot));
}

export async function destroySnapshot(pool: ZfsPool, ref: SnapshotRef, { signal }: StorageCall): Promise<void> {
  checkSnapshot(ref);
  const snapshot = await findSnapshot(pool, ref, signal);
  if (snapshot === undefined) return;
  if (pool.leases.has(snapshot.name)) throw snapshotInUse("the snapshot");
  const outcome = await pool.datasets.destroy(snapshot.name, {
    scope: "alone",
    patienceMs: pool.limits.busyPatienceMs,
    signal,
  });
  if (outcome.kind === "refused") {
    throw outcome.failure === "dependents"
      ? snapshotInUse("the snapshot")
      : storageError("destroying a snapshot", outcome);
  }
}

/** Looked up by name among all heads: a promoted head takes snapshots over from another. */
export async function findSnapshot(
  { datasets, layout }: ZfsPool,
  ref: SnapshotRef,
  signal: AbortSignal,
): Promise<Dataset | undefined> {
  const present = await datasets.list(layout.session(ref.token), signal);
  return present.find(({ name }) => name.endsWith(`@${ref.name}`));
}

function toSnapshotInfo(token: string, snapshot: MarkedDataset): SnapshotInfo {
  return {
    token,
    name: shortName(snapshot.name),
    generation: generationOf(snapshot.name) ?? 0,
    createdAtMs: snapshot.createdAtMs,
    usedBytes: snapshot.usedBytes,
    referencedBytes: snapshot.referencedBytes,
    marks: snapshot.marks,
  };
}
