import { createHash } from "node:crypto";
import { access, chmod, mkdir, realpath } from "node:fs/promises";
import { dirname, join } from "node:path";
import type { StorageCall } from "../storage.ts";
import { findDaemon } from "./daemon.ts";
import { detectFlavor } from "./flavor.ts";
import type { LayoutNames } from "./layout-names.ts";
import { createLayout, type Layout } from "./layout.ts";
import { MOUNT_LOCK_PATH } from "./mount-lock.ts";
import { destroyPool } from "./pool.ts";
import type { ZfsPool, ZfsTools } from "./zfs-pool.ts";

/** A property of the pool that `flushHome` changes, which makes zfs-fuse write. */
const FLUSHED_PROPERTY = "turnbox:flushed_at_ms";

export interface HomeOptions extends LayoutNames {
  readonly home: string;
  readonly mountRoot?: string;
}

/** Makes the directories of a home that are missing, and returns its layout. Nothing mounted is touched. */
export async function prepareHome(options: HomeOptions): Promise<Layout> {
  await mkdir(options.home, { recursive: true, mode: 0o700 });
  // Only for root: a program that can lock the file can block all mounts.
  await mkdir(dirname(MOUNT_LOCK_PATH), { recursive: true, mode: 0o700 });
  const home = await realpath(options.home);
  const poolDirectory = join(home, "pool");
  await mkdir(poolDirectory, { recursive: true, mode: 0o700 });
  const mountRoot = await makeMountRoot(options.mountRoot ?? join(home, "mnt"));
  const homeId = createHash("sha256").update(home).digest("hex").slice(0, 32);
  const { poolName, basesDataset, sessionsDataset } = options;
  return createLayout({ homeId, poolDirectory, mountRoot, poolName, basesDataset, sessionsDataset });
}

/** Users of a sandbox can pass through it and cannot list it: they must not see the names below. */
async function makeMountRoot(path: string): Promise<string> {
  await mkdir(path, { recursive: true });
  await chmod(path, 0o711);
  return await realpath(path);
}

/**
 * In the order in which bytes travel: from the mounts to the pool, from the pool's memory to its image, from there to the
 * disk. zfs-fuse has no `zpool sync`, but a change of a property returns only when all earlier changes are written.
 */
export async function flushHome(
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

/** Destroys the pool first: if anything of it is in use, the directories stay. */
export async function destroyHome(
  options: HomeOptions,
  { zfs, mounts, clock, limits }: ZfsTools,
  signal: AbortSignal,
): Promise<void> {
  if (!(await exists(options.home))) return;
  const layout = await prepareHome(options);
  const flavor = await detectFlavor(zfs, signal);
  const patience = { clock, flavor, patienceMs: limits.resetPatienceMs, signal };
  if (flavor === "openzfs" || (await findDaemon({ zfs, mounts, clock, layout }, signal)) === "present") {
    for (const { source, path } of mounts.below(layout.mountRoot)) {
      if (source.startsWith(`${layout.pool}/`)) await mounts.unmount({ dataset: source, path }, patience);
    }
    await destroyPool({ zfs, layout }, patience);
  }
  const args = ["-rf", "--one-file-system", "--", layout.poolDirectory, layout.mountRoot];
  await zfs.read("removing the pool's directories", { program: "rm", args }, signal);
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
