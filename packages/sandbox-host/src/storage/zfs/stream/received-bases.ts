import type { Readable } from "node:stream";
import { checkBase, checkGuid } from "../../names.ts";
import type { BaseRef, StorageCall } from "../../storage.ts";
import { makeBaseName } from "../bases.ts";
import { baseOf, filesystemOf, shortName } from "../layout.ts";
import type { ZfsPool } from "../zfs-pool.ts";
import { finishDataset, forgetDataset, markSnapshot, prepareDataset, removeUnfinished } from "./new-dataset.ts";
import { readPoints, type StreamPoint } from "./points.ts";
import { takeIn } from "./taking-in.ts";
import { verifyReceived } from "./verify.ts";

/** The snapshot of a base that is here. */
export interface FoundBase {
  readonly snapshot: string;
  readonly guid: string;
  readonly base: BaseRef;
}

/** All versions of a template that are here, those that were made here first; of all templates if none is named. */
export async function findBases(pool: ZfsPool, signal: AbortSignal, base?: BaseRef): Promise<readonly FoundBase[]> {
  if (base !== undefined) checkBase(base);
  const { layout } = pool;
  const points = await readPoints(pool, base === undefined ? layout.bases : layout.baseName(base.name), signal);
  const found = points.flatMap(({ name, guid, isOurs }) => {
    const parsed = isOurs && shortName(name) === "base" ? baseOf(layout, name) : undefined;
    if (parsed === undefined || (base !== undefined && parsed.base.digest !== base.digest)) return [];
    return [{ snapshot: name, guid, base: parsed.base, isReceived: parsed.receivedGuid !== undefined }];
  });
  return found.toSorted((left, right) => Number(left.isReceived) - Number(right.isReceived));
}

/** Beside the one that was made here: a dataset of its own, closed to writing, which no listing of templates shows. */
export async function receiveBase(
  pool: ZfsPool,
  { base, guid }: { readonly base: BaseRef; readonly guid: string },
  { source, signal }: StorageCall & { readonly source: Readable },
): Promise<void> {
  checkBase(base);
  checkGuid(guid);
  if ((await findBases(pool, signal, base)).some((found) => found.guid === guid)) return;
  const { layout } = pool;
  await makeBaseName(pool, base.name, signal);
  const parent = layout.baseName(base.name);
  await removeUnfinished(pool, parent, { signal });
  const name = layout.receivedBase(base, guid);
  const settings = ["canmount=noauto", "mountpoint=none", "readonly=on", "atime=off", "setuid=off", "devices=off"];
  const wanted = { parent, name, snapshot: "base", settings };
  // One that has its mark and whose snapshot has none was left by a service that died.
  if (!(await readPoints(pool, name, signal)).some((point) => isBaseOf(point, name, guid))) {
    const target = (): ReturnType<typeof prepareDataset> => prepareDataset(pool, wanted, { signal });
    await takeIn(pool, source, { expected: { guid, parentGuid: null, target }, signal }).catch(
      async (thrown: unknown) => {
        await forgetDataset(pool, parent);
        throw thrown;
      },
    );
    await verifyReceived(pool, { snapshot: `${name}@base`, guid }, { signal });
  }
  await finishDataset(pool, wanted);
  await markSnapshot(pool, `${name}@base`, []);
}

/** Destroys those of the bases that were received and that nothing stands on any more, by the names of their snapshots. */
export async function dropReceivedBases(
  pool: ZfsPool,
  snapshots: readonly string[],
  signal: AbortSignal,
): Promise<void> {
  const { datasets, layout, leases, limits } = pool;
  for (const snapshot of new Set(snapshots)) {
    if (baseOf(layout, snapshot)?.receivedGuid === undefined || leases.has(snapshot)) continue;
    const options = { scope: "with-snapshots", patienceMs: limits.busyPatienceMs, signal } as const;
    // One that cannot go goes with the next session, or at the next start.
    await datasets.destroy(filesystemOf(snapshot), options).catch(() => undefined);
  }
}

/** The same for all that there are, at a start: nothing is being received then. */
export async function sweepReceivedBases(pool: ZfsPool, { signal }: StorageCall): Promise<void> {
  const points = await readPoints(pool, pool.layout.bases, signal);
  const snapshots = points.filter(({ name, isOurs }) => isOurs && name.endsWith("@base")).map(({ name }) => name);
  await dropReceivedBases(pool, snapshots, signal);
}

function isBaseOf(point: StreamPoint, dataset: string, guid: string): boolean {
  return point.name === `${dataset}@base` && point.guid === guid;
}
