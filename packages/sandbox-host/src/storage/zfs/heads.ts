import { SandboxError } from "@turnbox/core";
import { checkHead, checkMarks, headDiffers, headNotFound, sessionNotFound, snapshotInUse } from "../names.ts";
import type { Head, HeadRef, HeadSpec, StorageCall } from "../storage.ts";
import { storageError } from "./failure.ts";
import { toProperties } from "./marks.ts";
import type { MountTarget } from "./mounts.ts";
import { resolveOrigin, withOrigin } from "./origins.ts";
import { findSessionDataset } from "./session-dataset.ts";
import { FILE_PROPERTIES, type ResolvedOrigin, type ZfsPool } from "./zfs-pool.ts";

export async function createHead(pool: ZfsPool, spec: HeadSpec, { signal }: StorageCall): Promise<Head> {
  checkHead(spec);
  checkMarks(spec.marks);
  if ((await findSessionDataset(pool, spec.token, signal)) === undefined) throw sessionNotFound();
  const work = (from: ResolvedOrigin): Promise<Head> => cloneHead(pool, { ...spec, from, leftover: "replace" }, signal);
  return await withOrigin(pool, spec.origin, { signal, need: "name", work });
}

/** A head to be made. */
interface CloneSpec extends HeadSpec {
  readonly from: ResolvedOrigin;
  /** What becomes of an unused head of the same name that was cloned from something else. */
  readonly leftover: "replace" | "keep";
}

/** Clones with all properties in one step, so that a head either is complete or is not there; then mounts. */
export async function cloneHead(pool: ZfsPool, spec: CloneSpec, signal: AbortSignal): Promise<Head> {
  const { zfs, layout, datasets, mounts } = pool;
  const dataset = layout.head(spec);
  const { refquotaBytes, from } = spec;
  const settings = [
    ...FILE_PROPERTIES,
    `mountpoint=${layout.headMount(spec)}`,
    ...(refquotaBytes === undefined ? [] : [`refquota=${refquotaBytes}`]),
  ];
  const args = [
    "clone",
    ...settings.flatMap((value) => ["-o", value]),
    ...toProperties(layout.home, spec.marks),
    from.snapshot,
    dataset,
  ];
  const isDone = async (probe: AbortSignal): Promise<boolean> => {
    const present = await datasets.find(dataset, probe);
    // A head that was promoted holds its origin itself.
    return present?.origin === from.snapshot || (present !== undefined && from.snapshot.startsWith(`${dataset}@`));
  };
  const outcome = await zfs.change({ program: "zfs", args, doing: "cloning", isDone }, signal);
  if (outcome.kind === "refused") {
    if (outcome.failure === "exists") {
      if (await isDone(signal)) return await mountHead(pool, spec, { signal });
      // The origin may have been known under a head that a promotion has taken it from.
      const now = await resolveOrigin(pool, spec.origin, signal);
      if (now.snapshot !== from.snapshot) return await cloneHead(pool, { ...spec, from: now }, signal);
      await removeLeftover(pool, spec, signal);
      return await cloneHead(pool, { ...spec, leftover: "keep" }, signal);
    }
    if (outcome.failure === "not-found") throw await whatIsMissing(pool, spec, signal);
    const { referencedBytes } = await resolveOrigin(pool, spec.origin, signal);
    if (refquotaBytes !== undefined && refquotaBytes < referencedBytes)
      throw new SandboxError("QUOTA_EXCEEDED", `the origin refers to ${referencedBytes} bytes, more than the head may`);
    throw storageError("cloning", outcome);
  }
  await mounts.mount(mountOf(pool, spec), signal);
  return toHead(pool, spec, refquotaBytes);
}

/**
 * A head of this name that was cloned from something else is left from an attempt that was cut off, if it is neither
 * mounted nor sealed. Anything else may hold work, and stays.
 */
async function removeLeftover(pool: ZfsPool, spec: CloneSpec, signal: AbortSignal): Promise<void> {
  const { datasets, mounts, limits } = pool;
  const { dataset, path } = mountOf(pool, spec);
  if (spec.leftover === "keep" || mounts.isMounted({ dataset, path })) throw headDiffers(spec);
  // Alone: zfs itself refuses if there are snapshots.
  const outcome = await datasets.destroy(dataset, { scope: "alone", patienceMs: limits.busyPatienceMs, signal });
  if (outcome.kind === "refused") throw headDiffers(spec, storageError("destroying a leftover head", outcome));
}

async function whatIsMissing(pool: ZfsPool, spec: HeadRef, signal: AbortSignal): Promise<SandboxError> {
  const session = await pool.datasets.find(pool.layout.session(spec.token), signal);
  return session === undefined
    ? sessionNotFound()
    : new SandboxError("SNAPSHOT_NOT_FOUND", "the origin went away meanwhile");
}

export async function mountHead(pool: ZfsPool, head: HeadRef, { signal }: StorageCall): Promise<Head> {
  checkHead(head);
  const dataset = await pool.datasets.find(pool.layout.head(head), signal);
  if (dataset === undefined) throw headNotFound(head);
  const where = mountOf(pool, head);
  const wasMounted = pool.mounts.isMounted(where);
  // The table names a mount long after its daemon has died.
  if (wasMounted && !(await pool.mounts.answering([where.path], signal)).has(where.path))
    throw new SandboxError("STORAGE_UNAVAILABLE", "the head is mounted, but its daemon has died");
  await pool.mounts.mount(where, signal);
  return toHead(pool, head, dataset.refquotaBytes === 0 ? undefined : dataset.refquotaBytes);
}

export async function unmountHead(pool: ZfsPool, head: HeadRef, { signal }: StorageCall): Promise<void> {
  checkHead(head);
  const where = mountOf(pool, head);
  // In this order: a dead daemon cannot say whether the head is there, and its mounts go all the same.
  if (pool.mounts.isMounted(where)) {
    await pool.mounts.unmount(where, { flavor: pool.flavor, patienceMs: pool.limits.busyPatienceMs, signal });
    return;
  }
  if ((await pool.datasets.find(where.dataset, signal)) === undefined) throw headNotFound(head);
}

export async function destroyHead(pool: ZfsPool, head: HeadRef, { signal }: StorageCall): Promise<void> {
  checkHead(head);
  const { datasets, layout, limits } = pool;
  const name = layout.head(head);
  if ((await datasets.find(name, signal)) === undefined) return;
  const isSent = pool.leases.startingWith(`${name}@`).length > 0;
  if (isSent || (await datasets.lineage(name, signal)).clones.size > 0) throw snapshotInUse("the head");
  await endHead(pool, head, { patienceMs: limits.busyPatienceMs, signal });
}

/** Unmounts and destroys a head that nothing was cloned from. */
export async function endHead(
  pool: ZfsPool,
  head: HeadRef,
  { patienceMs, signal }: StorageCall & { readonly patienceMs: number },
): Promise<void> {
  const startedMs = pool.clock.monotonicMs();
  await pool.mounts.unmount(mountOf(pool, head), { flavor: pool.flavor, patienceMs, signal });
  const leftMs = Math.max(0, patienceMs - (pool.clock.monotonicMs() - startedMs));
  const outcome = await pool.datasets.destroy(pool.layout.head(head), {
    scope: "with-snapshots",
    patienceMs: leftMs,
    signal,
  });
  if (outcome.kind === "refused") {
    throw outcome.failure === "dependents" ? snapshotInUse("the head") : storageError("destroying a head", outcome);
  }
  await pool.mounts.removeMountPoint(pool.layout.headMount(head), signal);
}

export async function headBytes(pool: ZfsPool, head: HeadRef, { signal }: StorageCall): Promise<number> {
  checkHead(head);
  const dataset = await pool.datasets.find(pool.layout.head(head), signal);
  if (dataset === undefined) throw headNotFound(head);
  return dataset.referencedBytes;
}

/** The dataset of a head and the directory that it is mounted at. */
export function mountOf({ layout }: ZfsPool, head: HeadRef): MountTarget {
  return { dataset: layout.head(head), path: layout.headMount(head) };
}

export function toHead({ layout }: ZfsPool, { token, generation }: HeadRef, refquotaBytes: number | undefined): Head {
  return {
    token,
    generation,
    path: layout.headMount({ token, generation }),
    ...(refquotaBytes === undefined ? {} : { refquotaBytes }),
  };
}
