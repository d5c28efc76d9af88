import { mkdir } from "node:fs/promises";
import { dirname } from "node:path";
import { checkToken, sessionNotFound } from "../names.ts";
import type { JournalDirectory, JournalsSpec } from "../journals.ts";
import type { StorageCall } from "../storage.ts";
import { storageError } from "./failure.ts";
import { toProperties } from "./marks.ts";
import type { MountTarget } from "./mounts.ts";
import { FILE_PROPERTIES, type ZfsPool } from "./zfs-pool.ts";

/** A dataset with a plain quota: a process that appends to a file in it gets an error when it is full, also while no service runs. */
export async function openJournals(
  pool: ZfsPool,
  { token, quotaBytes }: JournalsSpec,
  { signal }: StorageCall,
): Promise<JournalDirectory> {
  checkToken(token);
  const target = mountOf(pool, token);
  // One that is mounted is answered from the mount table alone.
  if (!pool.mounts.isMounted(target)) await ensureDataset(pool, { token, quotaBytes, target }, signal);
  await pool.mounts.mount(target, signal);
  return { path: target.path, touch: "by_worker" };
}

async function ensureDataset(
  { zfs, datasets, layout }: ZfsPool,
  { token, quotaBytes, target }: JournalsSpec & { readonly target: MountTarget },
  signal: AbortSignal,
): Promise<void> {
  const [session, present] = await Promise.all([
    datasets.find(layout.session(token), signal),
    datasets.find(target.dataset, signal),
  ]);
  if (session === undefined) throw sessionNotFound();
  if (present !== undefined) return;
  // What processes write is for the service alone.
  await mkdir(dirname(target.path), { recursive: true, mode: 0o700 });
  const settings = [...FILE_PROPERTIES, "exec=off", `quota=${quotaBytes}`, `mountpoint=${target.path}`];
  const args = [
    "create",
    ...settings.flatMap((value) => ["-o", value]),
    ...toProperties(layout.home, {}),
    target.dataset,
  ];
  const isDone = async (probe: AbortSignal): Promise<boolean> =>
    (await datasets.find(target.dataset, probe)) !== undefined;
  const doing = "making a dataset for journals";
  const outcome = await zfs.change({ program: "zfs", args, doing, isDone }, signal);
  if (outcome.kind === "refused" && outcome.failure !== "exists") throw storageError(doing, outcome);
}

/** Ends the journals of a session; those that are not there are gone. */
export async function endJournals(
  pool: ZfsPool,
  token: string,
  { patienceMs, signal }: StorageCall & { readonly patienceMs: number },
): Promise<void> {
  const target = mountOf(pool, token);
  if ((await pool.datasets.find(target.dataset, signal)) === undefined) return;
  await pool.mounts.unmount(target, { flavor: pool.flavor, patienceMs, signal });
  const outcome = await pool.datasets.destroy(target.dataset, { scope: "with-snapshots", patienceMs, signal });
  if (outcome.kind === "refused") throw storageError("destroying journals", outcome);
  await pool.mounts.removeMountPoint(target.path, signal);
}

function mountOf({ layout }: ZfsPool, token: string): MountTarget {
  return { dataset: layout.journalsOf(token), path: layout.journalsMount(token) };
}
