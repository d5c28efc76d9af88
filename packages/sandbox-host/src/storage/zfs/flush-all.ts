import type { StorageCall } from "../storage.ts";
import type { ZfsPool } from "./zfs-pool.ts";

/** What `flushAll` writes to make zfs-fuse write. */
const FLUSHED_PROPERTY = "turnbox:flushed_at_ms";

/**
 * In the order in which bytes travel: from the mounts to the pool, from the pool's memory to its image, from there to the
 * disk. zfs-fuse knows no `zpool sync`, but it answers a change of a property only when all that came before is written.
 */
export async function flushAll(
  { zfs, layout, mounts, flavor, limits, clock }: ZfsPool,
  { signal }: StorageCall,
): Promise<void> {
  const doing = "flushing the pool";
  const sync = async (paths: readonly string[]): Promise<void> => {
    const args = ["-f", "--", ...paths];
    await zfs.read(doing, { program: "sync", args, deadlineMs: limits.flushDeadlineMs }, signal);
  };
  const mounted = mounts.below(layout.mountRoot).map(({ path }) => path);
  if (mounted.length > 0) await sync(mounted);
  await zfs.read(
    doing,
    flavor === "openzfs"
      ? { program: "zpool", args: ["sync", layout.pool], deadlineMs: limits.flushDeadlineMs }
      : { program: "zfs", args: ["set", `${FLUSHED_PROPERTY}=${clock.nowMs()}`, layout.pool] },
    signal,
  );
  await sync([layout.imagePath]);
}
