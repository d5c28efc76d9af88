import { headNotFound, snapshotNotFound, viewOfSnapshot, viewSnapshotName } from "../names.ts";
import type { HeadRef, SnapshotRef, StorageCall } from "../storage.ts";
import type { Point } from "../views.ts";
import { storageError } from "./failure.ts";
import { shortName } from "./layout.ts";
import { toProperties } from "./marks.ts";
import type { MountTarget } from "./mounts.ts";
import { findSnapshot, flush } from "./snapshots.ts";
import { FILE_PROPERTIES, type ZfsPool } from "./zfs-pool.ts";

/** Makes the clone that a view is, mounted, and before it the snapshot if the view is of a head. */
export async function makeView(
  pool: ZfsPool,
  name: string,
  { point, signal }: StorageCall & { readonly point: Point },
): Promise<{ readonly path: string; readonly snapshot: SnapshotRef }> {
  const { zfs, layout, datasets, mounts } = pool;
  const from =
    point.kind === "head"
      ? await takeSnapshot(pool, point.head, { name: viewSnapshotName(name), signal })
      : (await findSnapshot(pool, point.snapshot, signal))?.name;
  if (from === undefined) throw snapshotNotFound();
  const target = viewMountOf(pool, name);
  const settings = [...FILE_PROPERTIES, "readonly=on", `mountpoint=${target.path}`].flatMap((value) => ["-o", value]);
  const args = ["clone", ...settings, ...toProperties(layout.home, {}), from, target.dataset];
  const isDone = async (probe: AbortSignal): Promise<boolean> =>
    (await datasets.find(target.dataset, probe)) !== undefined;
  const outcome = await zfs.change({ program: "zfs", args, doing: "opening a view", isDone }, signal);
  if (outcome.kind === "refused" && outcome.failure !== "exists") {
    throw outcome.failure === "not-found" ? snapshotNotFound() : storageError("opening a view", outcome);
  }
  await mounts.mount(target, signal);
  const { token } = point.kind === "head" ? point.head : point.snapshot;
  return { path: target.path, snapshot: { token, name: shortName(from) } };
}

async function takeSnapshot(
  pool: ZfsPool,
  head: HeadRef,
  { name, signal }: StorageCall & { readonly name: string },
): Promise<string> {
  const { zfs, layout, datasets } = pool;
  const dataset = layout.head(head);
  const [present] = await Promise.all([datasets.find(dataset, signal), flush(pool, head, signal)]);
  if (present === undefined) throw headNotFound(head);
  const snapshot = `${dataset}@${name}`;
  const args = ["snapshot", ...toProperties(layout.home, {}), snapshot];
  const isDone = async (probe: AbortSignal): Promise<boolean> => (await datasets.find(snapshot, probe)) !== undefined;
  const outcome = await zfs.change({ program: "zfs", args, doing: "opening a view", isDone }, signal);
  if (outcome.kind === "refused" && outcome.failure !== "exists") {
    throw outcome.failure === "not-found" ? headNotFound(head) : storageError("opening a view", outcome);
  }
  return snapshot;
}

export async function endView(pool: ZfsPool, name: string, { signal }: StorageCall): Promise<void> {
  const { datasets, mounts, flavor, limits } = pool;
  const target = viewMountOf(pool, name);
  const patienceMs = limits.busyPatienceMs;
  await mounts.unmount(target, { flavor, patienceMs, signal });
  const outcome = await datasets.destroy(target.dataset, { scope: "alone", patienceMs, signal });
  if (outcome.kind === "refused") throw storageError("closing a view", outcome);
  await mounts.removeMountPoint(target.path, signal);
}

/**
 * Removes the views that are not open, left by a service that died or by a view that was busy when it was closed. What
 * cannot go now goes another time.
 */
export async function sweepViews(pool: ZfsPool, live: ReadonlySet<string>, signal: AbortSignal): Promise<void> {
  const { datasets, layout } = pool;
  for (const { name, origin } of await datasets.origins(layout.views, signal)) {
    const view = name.slice(layout.views.length + 1);
    if (view === "" || live.has(view)) continue;
    await removeIfOurs(pool, name, { signal, remove: () => endView(pool, view, { signal }) });
    if (isLeft(origin, live)) await removeSnapshot(pool, origin, signal);
  }
}

/** The same for snapshots whose view is gone already, among the names of everything there is: listing them takes long. */
export async function sweepViewSnapshots(
  pool: ZfsPool,
  { names, live, signal }: StorageCall & { readonly names: readonly string[]; readonly live: ReadonlySet<string> },
): Promise<void> {
  for (const name of names) if (name.includes("@") && isLeft(name, live)) await removeSnapshot(pool, name, signal);
}

function isLeft(snapshot: string, live: ReadonlySet<string>): boolean {
  const view = viewOfSnapshot(shortName(snapshot));
  return view !== undefined && !live.has(view);
}

async function removeSnapshot(pool: ZfsPool, snapshot: string, signal: AbortSignal): Promise<void> {
  const options = { scope: "alone", patienceMs: pool.limits.busyPatienceMs, signal } as const;
  await removeIfOurs(pool, snapshot, { signal, remove: () => pool.datasets.destroy(snapshot, options) });
}

async function removeIfOurs(
  { datasets }: ZfsPool,
  name: string,
  { signal, remove }: StorageCall & { readonly remove: () => Promise<unknown> },
): Promise<void> {
  try {
    if ((await datasets.find(name, signal)) !== undefined) await remove();
  } catch {
    // In use, or not this home's.
  }
}

function viewMountOf({ layout }: ZfsPool, name: string): MountTarget {
  return { dataset: layout.view(name), path: layout.viewMount(name) };
}
