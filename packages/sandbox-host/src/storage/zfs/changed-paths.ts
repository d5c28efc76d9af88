import { checkSnapshot } from "../names.ts";
import type { SnapshotRef, StorageCall } from "../storage.ts";
import { filesystemOf, headOf } from "./layout.ts";
import { readLine } from "./line.ts";
import { mountOf } from "./heads.ts";
import { parseDiff } from "./parse-diff.ts";
import type { ZfsRoom } from "./zfs-room.ts";

const DIFF_DEADLINE_MS = 60_000;

/**
 * By `zfs diff`, which zfs-fuse does not have, and which needs the later head mounted. It fails on some files, and may take
 * longer than looking at everything; then nothing is known.
 */
export async function changedPaths(
  room: ZfsRoom,
  from: SnapshotRef,
  { to, signal }: StorageCall & { readonly to: SnapshotRef },
): Promise<readonly string[] | null> {
  checkSnapshot(from);
  checkSnapshot(to);
  if (room.flavor !== "openzfs") return null;
  const line = await readLine(room, { from, to }, signal);
  if (line.segments?.length === 0) return [];
  const head = headOf(room.layout, filesystemOf(line.to.name));
  if (line.segments === undefined || head === undefined) return null;
  const target = mountOf(room, head);
  if (!room.mounts.isMounted(target)) return null;
  const args = ["diff", "-FH", line.from.name, line.to.name];
  const outcome = await room.zfs.attempt({ program: "zfs", args, deadlineMs: DIFF_DEADLINE_MS }, signal);
  return outcome.kind === "done" ? parseDiff(outcome.stdout, target.path) : null;
}
