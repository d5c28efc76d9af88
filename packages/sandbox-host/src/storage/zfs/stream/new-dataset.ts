import type { StorageCall } from "../../storage.ts";
import { HOME_PROPERTY, RECEIVING_PROPERTY } from "../marks.ts";
import { setProperties } from "../set-properties.ts";
import { UNDO_DEADLINE_MS, type ZfsPool } from "../zfs-pool.ts";
import { readPoints, unfinishedIn } from "./points.ts";
import type { ReceiveTarget } from "./taking-in.ts";

const DOING = "receiving a snapshot";
const NOTHING = "nothing";

/** A dataset that comes into being by a stream. */
export interface NewDataset {
  /** The dataset that it is directly below. */
  readonly parent: string;
  readonly name: string;
  readonly snapshot: string;
  /** What it is a clone of; undefined for a full stream. */
  readonly origin?: string | undefined;
  /** Its properties, as `name=value`. */
  readonly settings: readonly string[];
}

/**
 * Where the stream goes. OpenZFS makes the dataset with its properties and as a clone of what it is given. zfs-fuse can do
 * neither: it makes a bare one, which is noted above it before, and looks for the origin by its guid. It takes the first that
 * it finds in the whole pool, or below the dataset that is named with `-d` if it finds one there; then the stream's own name
 * says what is made.
 */
export async function prepareDataset(
  pool: ZfsPool,
  wanted: NewDataset,
  { signal }: StorageCall,
): Promise<ReceiveTarget> {
  const { parent, name, snapshot, origin, settings } = wanted;
  const { layout, flavor } = pool;
  const target = `${name}@${snapshot}`;
  if (flavor === "openzfs") {
    const all = [...(origin === undefined ? [] : [`origin=${origin}`]), ...settings, `${HOME_PROPERTY}=${layout.home}`];
    return { args: [...all.flatMap((setting) => ["-o", setting]), target] };
  }
  const short = name.slice(parent.length + 1);
  const note = [`${RECEIVING_PROPERTY}=${short}`];
  await setProperties(pool, { dataset: parent, settings: note, doing: DOING }, signal);
  return origin?.startsWith(`${parent}/`) === true
    ? { args: ["-d", parent], renamed: `x/${short}@${snapshot}` }
    : { args: [target] };
}

/** After a stream that failed: what is not there is not noted any more. What a daemon still works on stays noted. */
export async function forgetDataset(pool: ZfsPool, parent: string): Promise<void> {
  const signal = AbortSignal.timeout(UNDO_DEADLINE_MS);
  try {
    if (unfinishedIn(await readPoints(pool, parent, signal)).length === 0) await clearNote(pool, parent, signal);
  } catch {
    // A note of what is not there harms nothing; the failure of the stream is what counts.
  }
}

/** Gives what was received its properties, the mark of its owner last: with it, it is complete. */
export async function finishDataset(
  pool: ZfsPool,
  { parent, name, settings }: Pick<NewDataset, "parent" | "name" | "settings">,
): Promise<void> {
  // On its own clock: what has been taken in is worth keeping when the caller has gone.
  const signal = AbortSignal.timeout(UNDO_DEADLINE_MS);
  const all = [...settings, `${HOME_PROPERTY}=${pool.layout.home}`];
  await setProperties(pool, { dataset: name, settings: all, doing: DOING }, signal);
  await clearNote(pool, parent, signal);
}

/** Marks a received snapshot; before that it is in no listing. */
export async function markSnapshot(pool: ZfsPool, snapshot: string, settings: readonly string[]): Promise<void> {
  const all = [...settings, `${HOME_PROPERTY}=${pool.layout.home}`];
  const signal = AbortSignal.timeout(UNDO_DEADLINE_MS);
  await setProperties(pool, { dataset: snapshot, settings: all, doing: DOING }, signal);
}

/** Removes what a service that died has received and not finished. */
export async function removeUnfinished(pool: ZfsPool, parent: string, { signal }: StorageCall): Promise<void> {
  const { datasets, limits } = pool;
  for (const { name } of unfinishedIn(await readPoints(pool, parent, signal))) {
    await datasets.destroy(name, { scope: "with-snapshots", patienceMs: limits.busyPatienceMs, signal });
  }
}

async function clearNote(pool: ZfsPool, parent: string, signal: AbortSignal): Promise<void> {
  if (pool.flavor === "openzfs") return;
  const settings = [`${RECEIVING_PROPERTY}=${NOTHING}`];
  await setProperties(pool, { dataset: parent, settings, doing: DOING }, signal);
}
