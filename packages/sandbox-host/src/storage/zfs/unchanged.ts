import { hasReason, SandboxError } from "@turnbox/core";
import { snapshotNotFound } from "../names.ts";
import type { SnapshotRef, StorageCall } from "../storage.ts";
import { readAncestry, type Segment } from "./ancestry.ts";
import { storageError } from "./failure.ts";
import { filesystemOf } from "./layout.ts";
import { parseBytes } from "./parse.ts";
import type { Outcome, ZfsCommand } from "./zfs-command.ts";
import type { ZfsPool } from "./zfs-pool.ts";

/** What zfs-fuse sends of two snapshots between which nothing was written: the records that begin and end a stream. */
const EMPTY_STREAM_BYTES = 624;
const DOING = "comparing snapshots";

/**
 * Nothing was written between two snapshots if nothing was written on any part of the way. Two that are known to be on one
 * head are compared at once, without listing the session first.
 */
export async function isUnchanged(
  pool: ZfsPool,
  snapshot: SnapshotRef,
  { since, signal }: StorageCall & { readonly since: SnapshotRef },
): Promise<boolean> {
  const look = async (): Promise<boolean> => {
    const { from, to, segments } = await readAncestry(pool, { from: since, to: snapshot }, signal);
    noteSnapshot(pool, since, from.name);
    noteSnapshot(pool, snapshot, to.name);
    if (segments === undefined) return false;
    for (const segment of segments) {
      if (!(await isEmpty(pool, segment, signal))) return false;
    }
    return true;
  };
  // A promotion in the session that `since` belongs to may just have moved a snapshot to another head.
  const again = async (thrown: unknown): Promise<boolean> => {
    if (!hasReason(thrown, "SNAPSHOT_NOT_FOUND")) throw thrown;
    return await look();
  };
  const [from, to] = [knownSnapshot(pool, since), knownSnapshot(pool, snapshot)];
  if (from === undefined || to === undefined || from === to || filesystemOf(from) !== filesystemOf(to))
    return await look().catch(again);
  return await isEmpty(pool, { from, to }, signal).catch(async (thrown: unknown) => {
    // They may have been moved, or `since` may be the later one, which zfs refuses in words of its own.
    if (!isRefusal(thrown)) throw thrown;
    return await look().catch(again);
  });
}

function isRefusal(thrown: unknown): boolean {
  if (hasReason(thrown, "SNAPSHOT_NOT_FOUND")) return true;
  return hasReason(thrown, "STORAGE_UNAVAILABLE") && thrown.metadata["failure"] !== undefined;
}

function knownSnapshot({ origins }: ZfsPool, snapshot: SnapshotRef): string | undefined {
  return origins.find({ kind: "snapshot", snapshot })?.snapshot;
}

function noteSnapshot({ origins }: ZfsPool, snapshot: SnapshotRef, dataset: string): void {
  const origin = { kind: "snapshot", snapshot } as const;
  origins.note(origin, { snapshot: dataset, referencedBytes: origins.find(origin)?.referencedBytes });
}

function isEmpty(pool: ZfsPool, segment: Segment, signal: AbortSignal): Promise<boolean> {
  return pool.flavor === "openzfs" ? isNothingWritten(pool, segment, signal) : isNothingSent(pool, segment, signal);
}

async function isNothingWritten({ zfs }: ZfsPool, { from, to }: Segment, signal: AbortSignal): Promise<boolean> {
  const args = ["get", "-Hp", "-o", "value", `written@${from}`, to];
  const outcome = await zfs.attempt({ program: "zfs", args }, signal);
  if (outcome.kind !== "done") throw failure(outcome);
  const value = outcome.stdout.trim();
  if (/^\d+B?$/.test(value) && parseBytes(value) === 0) return true;
  // A clone counts as written to although nothing has touched a file: 1024 bytes, seen on 2.3, mounted or not.
  return filesystemOf(from) !== filesystemOf(to) && (await isNoDifference(zfs, { from, to }, signal));
}

async function isNoDifference(zfs: ZfsCommand, { from, to }: Segment, signal: AbortSignal): Promise<boolean> {
  const readBounded = await zfs.readBounded({ program: "zfs", args: ["diff", "-FH", from, to] }, 0, signal);
  return readBounded.kind === "whole" && readBounded.bytes === 0;
}

/**
 * zfs-fuse does not count what was written, and `used` misses what a later snapshot shares; a stream has
 * everything, and its first bytes show whether there is anything.
 */
async function isNothingSent({ zfs }: ZfsPool, { from, to }: Segment, signal: AbortSignal): Promise<boolean> {
  const readBounded = await zfs.readBounded(
    { program: "zfs", args: ["send", "-i", from, to] },
    EMPTY_STREAM_BYTES,
    signal,
  );
  if (readBounded.kind === "refused" || readBounded.kind === "unknown") throw failure(readBounded);
  return readBounded.kind === "whole";
}

function failure(outcome: Exclude<Outcome, { kind: "done" }>): SandboxError {
  if (outcome.kind === "unknown")
    return new SandboxError("STORAGE_UNAVAILABLE", `${DOING} was not answered`, { cause: outcome.cause });
  return outcome.failure === "not-found" ? snapshotNotFound() : storageError(DOING, outcome);
}
