import { SandboxError } from "@turnbox/core";
import { baseInUse, checkBase } from "../names.ts";
import type { BaseInfo, BaseRef, StorageCall } from "../storage.ts";
import type { Dataset } from "./datasets.ts";
import { storageError } from "./failure.ts";
import { baseOf } from "./layout.ts";
import { property, toProperties } from "./marks.ts";
import { FILE_PROPERTIES, UNDO_DEADLINE_MS, type ZfsPool } from "./zfs-pool.ts";

/**
 * A version exists when its snapshot `@base` does; that is the last thing made and the first destroyed. A dataset without
 * it is half-made, by a call that died, and is made again.
 */
export async function createBase(
  pool: ZfsPool,
  base: BaseRef,
  { fill, signal }: StorageCall & { readonly fill: (directory: string) => Promise<void> },
): Promise<BaseInfo> {
  checkBase(base);
  const present = await findBase(pool, base, signal);
  if (present !== undefined) return present;
  await removeDataset(pool, base, signal);
  try {
    // A filling that went on after its mount was gone has written beside the pool.
    await pool.mounts.removeMountPoint(pool.layout.baseMount(base), signal);
    await makeDataset(pool, base, signal);
    await fill(pool.layout.baseMount(base));
    await freeze(pool, base, signal);
  } catch (thrown) {
    await removeDataset(pool, base, AbortSignal.timeout(UNDO_DEADLINE_MS)).catch(() => undefined);
    throw thrown;
  }
  const made = await findBase(pool, base, signal);
  if (made === undefined)
    throw storageError("reading the template", { failure: "other", stderr: "its snapshot is not there" });
  return made;
}

export async function listBases(pool: ZfsPool, { signal }: StorageCall): Promise<readonly BaseInfo[]> {
  const datasets = await pool.datasets.tree(pool.layout.bases, signal);
  return datasets.flatMap((dataset) => {
    const found = dataset.name.endsWith("@base") ? baseOf(pool.layout, dataset.name) : undefined;
    return found === undefined || found.receivedGuid !== undefined ? [] : [seen(pool, found.base, dataset)];
  });
}

export async function destroyBase(pool: ZfsPool, base: BaseRef, { signal }: StorageCall): Promise<void> {
  checkBase(base);
  const snapshot = pool.layout.baseSnapshot(base);
  if (pool.leases.has(snapshot)) throw baseInUse(base);
  if ((await pool.datasets.find(snapshot, signal)) !== undefined) {
    const outcome = await pool.datasets.destroy(snapshot, {
      scope: "alone",
      patienceMs: pool.limits.busyPatienceMs,
      signal,
    });
    if (outcome.kind === "refused") {
      throw outcome.failure === "dependents" ? baseInUse(base) : storageError("destroying a template", outcome);
    }
  }
  await removeDataset(pool, base, signal);
}

export async function findBase(pool: ZfsPool, base: BaseRef, signal: AbortSignal): Promise<BaseInfo | undefined> {
  const snapshot = await pool.datasets.find(pool.layout.baseSnapshot(base), signal);
  return snapshot === undefined ? undefined : seen(pool, base, snapshot);
}

async function makeDataset(pool: ZfsPool, base: BaseRef, signal: AbortSignal): Promise<void> {
  const { layout, mounts } = pool;
  await makeBaseName(pool, base.name, signal);
  const path = layout.baseMount(base);
  const files = [...FILE_PROPERTIES, `mountpoint=${path}`].flatMap((value) => ["-o", value]);
  await createIfAbsent(pool, [...files, ...toProperties(layout.home, {}), layout.base(base)], signal);
  await mounts.mount({ dataset: layout.base(base), path }, signal);
}

/** Makes the dataset that holds all versions of a template. */
export async function makeBaseName(pool: ZfsPool, name: string, signal: AbortSignal): Promise<void> {
  const { layout } = pool;
  const unmounted = [...property("mountpoint", "none"), ...property("canmount", "off")];
  await createIfAbsent(pool, [...unmounted, ...toProperties(layout.home, {}), layout.baseName(name)], signal);
}

async function createIfAbsent({ zfs }: ZfsPool, args: readonly string[], signal: AbortSignal): Promise<void> {
  const doing = "making a template";
  // If the outcome is unknown, the second try fails because it exists.
  const isDone = (): Promise<boolean> => Promise.resolve(false);
  const outcome = await zfs.change({ program: "zfs", args: ["create", ...args], doing, isDone }, signal);
  if (outcome.kind === "refused" && outcome.failure !== "exists") throw storageError(doing, outcome);
}

async function freeze(pool: ZfsPool, base: BaseRef, signal: AbortSignal): Promise<void> {
  const { zfs, layout, mounts, flavor, limits } = pool;
  const dataset = layout.base(base);
  const path = layout.baseMount(base);
  if (!mounts.isMounted({ dataset, path }))
    throw new SandboxError("STORAGE_UNAVAILABLE", "the template was unmounted while it was filled");
  await zfs.read(
    "flushing a template",
    { program: "sync", args: ["-f", "--", path], deadlineMs: limits.flushDeadlineMs },
    signal,
  );
  await zfs.read("closing a template", { program: "zfs", args: ["set", "readonly=on", dataset] }, signal);
  await mounts.unmount({ dataset, path }, { flavor, patienceMs: limits.busyPatienceMs, signal });
  const args = ["snapshot", ...toProperties(layout.home, {}), layout.baseSnapshot(base)];
  const isDone = async (probe: AbortSignal): Promise<boolean> => (await findBase(pool, base, probe)) !== undefined;
  const outcome = await zfs.change({ program: "zfs", args, doing: "closing a template", isDone }, signal);
  if (outcome.kind === "refused" && outcome.failure !== "exists") throw storageError("closing a template", outcome);
  await mounts.removeMountPoint(path, signal);
}

async function removeDataset(pool: ZfsPool, base: BaseRef, signal: AbortSignal): Promise<void> {
  const { datasets, layout, mounts, flavor, limits } = pool;
  const name = layout.base(base);
  if ((await datasets.find(name, signal)) === undefined) return;
  const patienceMs = limits.busyPatienceMs;
  const path = layout.baseMount(base);
  await mounts.unmount({ dataset: name, path }, { flavor, patienceMs, signal });
  const outcome = await datasets.destroy(name, { scope: "alone", patienceMs, signal });
  if (outcome.kind === "refused") {
    throw outcome.failure === "dependents" ? baseInUse(base) : storageError("destroying a template", outcome);
  }
  await mounts.removeMountPoint(path, signal);
}

/** What is said of a template whose snapshot was looked at; sessions are made from it without another look. */
function seen({ origins }: ZfsPool, { name, digest }: BaseRef, snapshot: Dataset): BaseInfo {
  const { createdAtMs, referencedBytes } = snapshot;
  origins.note({ kind: "base", base: { name, digest } }, { snapshot: snapshot.name, referencedBytes });
  return { name, digest, createdAtMs, referencedBytes };
}
