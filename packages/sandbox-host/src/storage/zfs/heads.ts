import { SandboxError } from "@turnbox/core";
import { checkHead, checkMarks, headDiffers, headNotFound, sessionNotFound, snapshotInUse } from "../names.ts";
import type { Head, HeadRef, HeadSpec, StorageCall } from "../storage.ts";
import { storageError } from "./failure.ts";
import { toProperties } from "./marks.ts";
import type { MountTarget } from "./mounts.ts";
import { type ResolvedOrigin, resolveOrigin, withOrigin } from "./origins.ts";
import { findPlace } from "./session-places.ts";
import { FILE_PROPERTIES, type ZfsRoom } from "./zfs-room.ts";

export async function createHead(room: ZfsRoom, spec: HeadSpec, { signal }: StorageCall): Promise<Head> {
  checkHead(spec);
  checkMarks(spec.marks);
  if ((await findPlace(room, spec.token, signal)) === undefined) throw sessionNotFound();
  const work = (from: ResolvedOrigin): Promise<Head> => cloneHead(room, { ...spec, from, leftover: "replace" }, signal);
  return await withOrigin(room, spec.origin, { signal, need: "place", work });
}

/** A head to be made. */
interface CloneSpec extends HeadSpec {
  readonly from: ResolvedOrigin;
  /** What becomes of an unused head of the same name that was cloned from something else. */
  readonly leftover: "replace" | "keep";
}

/** Clones with all properties in one step, so that a head either is complete or is not there; then mounts. */
export async function cloneHead(room: ZfsRoom, spec: CloneSpec, signal: AbortSignal): Promise<Head> {
  const { zfs, layout, datasets, mounts } = room;
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
      if (await isDone(signal)) return await mountHead(room, spec, { signal });
      // The origin may have been known by a place that a promotion has taken it from.
      const now = await resolveOrigin(room, spec.origin, signal);
      if (now.snapshot !== from.snapshot) return await cloneHead(room, { ...spec, from: now }, signal);
      await removeLeftover(room, spec, signal);
      return await cloneHead(room, { ...spec, leftover: "keep" }, signal);
    }
    if (outcome.failure === "not-found") throw await whatIsMissing(room, spec, signal);
    const { referencedBytes } = await resolveOrigin(room, spec.origin, signal);
    if (refquotaBytes !== undefined && refquotaBytes < referencedBytes)
      throw new SandboxError("QUOTA_EXCEEDED", `the origin refers to ${referencedBytes} bytes, more than the head may`);
    throw storageError("cloning", outcome);
  }
  await mounts.mount(mountOf(room, spec), signal);
  return toHead(room, spec, refquotaBytes);
}

/**
 * A head of this name that was cloned from something else is left from an attempt that was cut off, if it is neither
 * mounted nor sealed. Anything else may hold somebody's work, and stays.
 */
async function removeLeftover(room: ZfsRoom, spec: CloneSpec, signal: AbortSignal): Promise<void> {
  const { datasets, mounts, limits } = room;
  const { dataset, path } = mountOf(room, spec);
  if (spec.leftover === "keep" || mounts.isMounted({ dataset, path })) throw headDiffers(spec);
  // Alone: zfs itself refuses where there are snapshots.
  const outcome = await datasets.destroy(dataset, { reach: "alone", patienceMs: limits.busyPatienceMs, signal });
  if (outcome.kind === "refused") throw headDiffers(spec, storageError("destroying a leftover head", outcome));
}

async function whatIsMissing(room: ZfsRoom, spec: HeadRef, signal: AbortSignal): Promise<SandboxError> {
  const session = await room.datasets.find(room.layout.session(spec.token), signal);
  return session === undefined
    ? sessionNotFound()
    : new SandboxError("SNAPSHOT_NOT_FOUND", "the origin went away meanwhile");
}

export async function mountHead(room: ZfsRoom, head: HeadRef, { signal }: StorageCall): Promise<Head> {
  checkHead(head);
  const dataset = await room.datasets.find(room.layout.head(head), signal);
  if (dataset === undefined) throw headNotFound(head);
  const where = mountOf(room, head);
  const wasMounted = room.mounts.isMounted(where);
  // The table names a mount long after its daemon has died.
  if (wasMounted && !(await room.mounts.answering([where.path], signal)).has(where.path))
    throw new SandboxError("STORAGE_UNAVAILABLE", "the head is mounted, but its daemon has died");
  await room.mounts.mount(where, signal);
  return toHead(room, head, dataset.refquotaBytes === 0 ? undefined : dataset.refquotaBytes);
}

export async function unmountHead(room: ZfsRoom, head: HeadRef, { signal }: StorageCall): Promise<void> {
  checkHead(head);
  const where = mountOf(room, head);
  // In this order: a dead daemon cannot say whether the head is there, and its mounts go all the same.
  if (room.mounts.isMounted(where)) {
    await room.mounts.unmount(where, { flavor: room.flavor, patienceMs: room.limits.busyPatienceMs, signal });
    return;
  }
  if ((await room.datasets.find(where.dataset, signal)) === undefined) throw headNotFound(head);
}

export async function destroyHead(room: ZfsRoom, head: HeadRef, { signal }: StorageCall): Promise<void> {
  checkHead(head);
  const { datasets, layout, limits } = room;
  const name = layout.head(head);
  if ((await datasets.find(name, signal)) === undefined) return;
  if ((await datasets.kin(name, signal)).clones.size > 0) throw snapshotInUse("the head");
  await endHead(room, head, { patienceMs: limits.busyPatienceMs, signal });
}

/** Unmounts and destroys a head that nothing was cloned from. */
export async function endHead(
  room: ZfsRoom,
  head: HeadRef,
  { patienceMs, signal }: StorageCall & { readonly patienceMs: number },
): Promise<void> {
  const startedMs = room.clock.monotonicMs();
  await room.mounts.unmount(mountOf(room, head), { flavor: room.flavor, patienceMs, signal });
  const leftMs = Math.max(0, patienceMs - (room.clock.monotonicMs() - startedMs));
  const outcome = await room.datasets.destroy(room.layout.head(head), {
    reach: "with-snapshots",
    patienceMs: leftMs,
    signal,
  });
  if (outcome.kind === "refused") {
    throw outcome.failure === "dependents" ? snapshotInUse("the head") : storageError("destroying a head", outcome);
  }
  await room.mounts.removePlace(room.layout.headMount(head), signal);
}

export async function headBytes(room: ZfsRoom, head: HeadRef, { signal }: StorageCall): Promise<number> {
  checkHead(head);
  const dataset = await room.datasets.find(room.layout.head(head), signal);
  if (dataset === undefined) throw headNotFound(head);
  return dataset.referencedBytes;
}

/** Where a head is mounted. */
export function mountOf({ layout }: ZfsRoom, head: HeadRef): MountTarget {
  return { dataset: layout.head(head), path: layout.headMount(head) };
}

export function toHead({ layout }: ZfsRoom, { token, generation }: HeadRef, refquotaBytes: number | undefined): Head {
  return {
    token,
    generation,
    path: layout.headMount({ token, generation }),
    ...(refquotaBytes === undefined ? {} : { refquotaBytes }),
  };
}
