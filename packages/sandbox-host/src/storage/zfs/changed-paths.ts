import { checkSnapshot } from "../names.ts";
import type { SnapshotRef, StorageCall } from "../storage.ts";
import { readAncestry } from "./ancestry.ts";
import { mountOf } from "./heads.ts";
import { filesystemOf, headOf } from "./layout.ts";
import { parseDiff } from "./parse-diff.ts";
import type { ZfsPool } from "./zfs-pool.ts";

const DIFF_DEADLINE_MS = 60_000;

/**
 * By `zfs diff`, which zfs-fuse does not have, and which needs the later head mounted. It fails on some files, and may take
 * longer than looking at everything; then nothing is known.
 */
export async function changedPaths(
  pool: ZfsPool,
  from: SnapshotRef,
  { to, signal }: StorageCall & { readonly to: SnapshotRef },
): Promise<readonly string[] | null> {
  checkSnapshot(from);
  checkSnapshot(to);
  if (pool.flavor !== "openzfs") return null;
  const ancestry = await readAncestry(pool, { from, to }, signal);
  if (ancestry.segments?.length === 0) return [];
  const head = headOf(pool.layout, filesystemOf(ancestry.to.name));
  if (ancestry.segments === undefined || head === undefined) return null;
  const target = mountOf(pool, head);
  if (!pool.mounts.isMounted(target)) return null;
  const args = ["diff", "-FH", ancestry.from.name, ancestry.to.name];
  const outcome = await pool.zfs.attempt({ program: "zfs", args, deadlineMs: DIFF_DEADLINE_MS }, signal);
  return outcome.kind === "done" ? parseDiff(outcome.stdout, target.path) : null;
}
