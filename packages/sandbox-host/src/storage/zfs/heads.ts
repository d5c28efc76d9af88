import { SandboxError } from "@turnbox/core";
import {
  baseNotFound,
  checkHead,
  checkMarks,
  checkSnapshot,
  checkBase,
  headNotFound,
  sessionNotFound,
  snapshotInUse,
  snapshotNotFound,
} from "../names.ts";
import type { Head, HeadRef, HeadSpec, Origin, StorageCall } from "../storage.ts";
import { removeMountpoint } from "./bases.ts";
import { storageError } from "./failure.ts";
import { toProperties } from "./marks.ts";
import type { MountTarget } from "./mounts.ts";
import { findSnapshot } from "./snapshots.ts";
import { FILE_PROPERTIES, type ZfsRoom } from "./zfs-room.ts";

/** The snapshot that an origin names, and how much it refers to. */
export interface ResolvedOrigin {
  readonly snapshot: string;
  readonly referencedBytes: number;
}

export async function resolveOrigin(room: ZfsRoom, origin: Origin, signal: AbortSignal): Promise<ResolvedOrigin> {
  if (origin.kind === "base") {
    checkBase(origin.base);
    const name = room.layout.baseSnapshot(origin.base);
    const base = await room.datasets.find(name, signal);
    if (base === undefined) throw baseNotFound(origin.base);
    return { snapshot: name, referencedBytes: base.referencedBytes };
  }
  checkSnapshot(origin.snapshot);
  const snapshot = await findSnapshot(room, origin.snapshot, signal);
  if (snapshot === undefined) throw snapshotNotFound();
  return { snapshot: snapshot.name, referencedBytes: snapshot.referencedBytes };
}

export async function createHead(room: ZfsRoom, spec: HeadSpec, { signal }: StorageCall): Promise<Head> {
  checkHead(spec);
  checkMarks(spec.marks);
  if ((await room.datasets.find(room.layout.session(spec.token), signal)) === undefined) throw sessionNotFound();
  const origin = await resolveOrigin(room, spec.origin, signal);
  return await cloneHead(room, { ...spec, from: origin }, signal);
}

/** Clones with all properties in one step, so that a head either is complete or is not there; then mounts. */
export async function cloneHead(
  room: ZfsRoom,
  spec: Omit<HeadSpec, "origin"> & { readonly from: ResolvedOrigin },
  signal: AbortSignal,
): Promise<Head> {
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
  const isDone = async (probe: AbortSignal): Promise<boolean> => (await datasets.find(dataset, probe)) !== undefined;
  const outcome = await zfs.change({ program: "zfs", args, doing: "cloning", isDone }, signal);
  if (outcome.kind === "refused") {
    if (outcome.failure === "exists") return await mountHead(room, spec, { signal });
    if (outcome.failure === "not-found") throw await whatIsMissing(room, spec, signal);
    if (refquotaBytes !== undefined && refquotaBytes < from.referencedBytes) {
      throw new SandboxError(
        "QUOTA_EXCEEDED",
        `the origin refers to ${from.referencedBytes} bytes, more than the head may`,
      );
    }
    throw storageError("cloning", outcome);
  }
  await mounts.mount(target(room, spec), signal);
  return toHead(room, spec, refquotaBytes);
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
  await room.mounts.mount(target(room, head), signal);
  return toHead(room, head, dataset.refquotaBytes === 0 ? undefined : dataset.refquotaBytes);
}

export async function unmountHead(room: ZfsRoom, head: HeadRef, { signal }: StorageCall): Promise<void> {
  checkHead(head);
  if ((await room.datasets.find(room.layout.head(head), signal)) === undefined) throw headNotFound(head);
  await room.mounts.unmount(target(room, head), {
    flavor: room.flavor,
    patienceMs: room.limits.busyPatienceMs,
    signal,
  });
}

export async function destroyHead(room: ZfsRoom, head: HeadRef, { signal }: StorageCall): Promise<void> {
  checkHead(head);
  const { datasets, layout, limits } = room;
  const name = layout.head(head);
  if ((await datasets.find(name, signal)) === undefined) return;
  const lineages = await datasets.lineages(layout.sessions, signal);
  if (lineages.some(({ origin }) => origin.startsWith(`${name}@`))) throw snapshotInUse("the head");
  await endHead(room, head, { patienceMs: limits.busyPatienceMs, signal });
}

/** Unmounts and destroys a head that nothing was cloned from. */
export async function endHead(
  room: ZfsRoom,
  head: HeadRef,
  { patienceMs, signal }: StorageCall & { readonly patienceMs: number },
): Promise<void> {
  const startedMs = room.clock.monotonicMs();
  await room.mounts.unmount(target(room, head), { flavor: room.flavor, patienceMs, signal });
  const leftMs = Math.max(0, patienceMs - (room.clock.monotonicMs() - startedMs));
  const outcome = await room.datasets.destroy(room.layout.head(head), {
    reach: "with-snapshots",
    patienceMs: leftMs,
    signal,
  });
  if (outcome.kind === "refused") {
    throw outcome.failure === "dependents" ? snapshotInUse("the head") : storageError("destroying a head", outcome);
  }
  await removeMountpoint(room.layout.headMount(head));
}

function target({ layout }: ZfsRoom, head: HeadRef): MountTarget {
  return { dataset: layout.head(head), path: layout.headMount(head) };
}

function toHead({ layout }: ZfsRoom, { token, generation }: HeadRef, refquotaBytes: number | undefined): Head {
  return {
    token,
    generation,
    path: layout.headMount({ token, generation }),
    ...(refquotaBytes === undefined ? {} : { refquotaBytes }),
  };
}
