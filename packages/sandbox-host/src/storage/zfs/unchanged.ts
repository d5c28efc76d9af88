import { hasReason, SandboxError } from "@turnbox/core";
import { snapshotNotFound } from "../names.ts";
import type { HeadRef, SnapshotRef, StorageCall } from "../storage.ts";
import { readAncestry, type Segment } from "./ancestry.ts";
import { storageError } from "./failure.ts";
import { filesystemOf } from "./layout.ts";
import { parseBytes } from "./parse.ts";
import type { Outcome, ZfsCommand } from "./zfs-command.ts";
import type { ZfsPool } from "./zfs-pool.ts";

/** What zfs-fuse sends of two snapshots between which nothing was written: the records that begin and end a stream. */
const EMPTY_STREAM_BYTES = 624;
const DOING = "comparing snapshots";

/** Nothing was written between two snapshots if nothing was written on any part of the way. */
export async function isUnchanged(
  pool: ZfsPool,
  snapshot: SnapshotRef,
  { since, head, signal }: StorageCall & { readonly since: SnapshotRef; readonly head?: HeadRef },
): Promise<boolean> {
  const onHead = async (dataset: string): Promise<boolean> =>
    await isEmpty(pool, { from: `${dataset}@${since.name}`, to: `${dataset}@${snapshot.name}` }, signal);
  const look = async (): Promise<boolean> => {
    const { segments } = await readAncestry(pool, { from: since, to: snapshot }, signal);
    if (segments === undefined) return false;
    for (const segment of segments) {
      if (!(await isEmpty(pool, segment, signal))) return false;
    }
    return true;
  };
  // Either may be on another head, and a promotion in the session that `since` belongs to may just have moved it.
  const again = async (thrown: unknown): Promise<boolean> => {
    if (!hasReason(thrown, "SNAPSHOT_NOT_FOUND")) throw thrown;
    return await look();
  };
  return await (head === undefined ? look() : onHead(pool.layout.head(head))).catch(again).catch(again);
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
  const peek = await zfs.peek({ program: "zfs", args: ["diff", "-FH", from, to] }, 0, signal);
  return peek.kind === "whole" && peek.bytes === 0;
}

/**
 * zfs-fuse does not count what was written, and `used` misses what a later snapshot shares; a stream tells all, and its
 * first bytes tell whether there is anything.
 */
async function isNothingSent({ zfs }: ZfsPool, { from, to }: Segment, signal: AbortSignal): Promise<boolean> {
  const peek = await zfs.peek({ program: "zfs", args: ["send", "-i", from, to] }, EMPTY_STREAM_BYTES, signal);
  if (peek.kind === "refused" || peek.kind === "unknown") throw failure(peek);
  return peek.kind === "whole";
}

function failure(outcome: Exclude<Outcome, { kind: "done" }>): SandboxError {
  if (outcome.kind === "unknown")
    return new SandboxError("STORAGE_UNAVAILABLE", `${DOING} was not answered`, { cause: outcome.cause });
  return outcome.failure === "not-found" ? snapshotNotFound() : storageError(DOING, outcome);
}
