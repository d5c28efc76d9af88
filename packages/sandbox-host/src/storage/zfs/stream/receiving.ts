import type { Readable } from "node:stream";
import { hasReason, invalidArgument, SandboxError } from "@turnbox/core";
import { checkGuid, checkMarks, checkNewSnapshot, sessionNotFound, snapshotNotFound } from "../../names.ts";
import type { StorageCall } from "../../storage.ts";
import type { ReceivedSnapshot } from "../../streams.ts";
import { filesystemOf, headOf, shortName } from "../layout.ts";
import { markProperties, RECEIVED_PROPERTY } from "../marks.ts";
import { FILE_PROPERTIES, type ZfsPool } from "../zfs-pool.ts";
import type { BegunStream } from "./begin-record.ts";
import { finishDataset, forgetDataset, markSnapshot, prepareDataset, removeUnfinished } from "./new-dataset.ts";
import { readPoints, type StreamPoint, unfinishedIn } from "./points.ts";
import { findBases } from "./received-bases.ts";
import { type ReceiveTarget, takeIn } from "./taking-in.ts";
import { verifyReceived } from "./verify.ts";

/**
 * Takes in one snapshot. A head that consists of received snapshots gets an increment of its last one; for any other stream
 * a further head is made. Cut off at any point, the same call again goes on: what has been received has no mark, or not yet
 * all of its marks, until it is complete.
 */
export async function receive(
  pool: ZfsPool,
  wanted: ReceivedSnapshot,
  { source, signal }: StorageCall & { readonly source: Readable },
): Promise<void> {
  checkNewSnapshot(wanted);
  checkMarks(wanted.marks);
  checkGuid(wanted.guid);
  const root = pool.layout.session(wanted.token);
  const points = await readPoints(pool, root, signal);
  if (!points.some(({ name, isOurs }) => name === root && isOurs)) throw sessionNotFound();
  const present = points.find(({ name, guid }) => name.includes("@") && guid === wanted.guid);
  const snapshot = present?.name ?? (await takeInNew(pool, wanted, { points, source, signal }));
  if (shortName(snapshot) !== wanted.name)
    throw invalidArgument("snapshot", "this one is here already, under another name");
  const head = filesystemOf(snapshot);
  if (!points.some(({ name, isOurs }) => name === head && isOurs))
    await finishDataset(pool, { parent: root, name: head, settings: headSettings(pool, head) });
  if (present?.isOurs !== true) await markSnapshot(pool, snapshot, markProperties(wanted.marks));
}

/** Where a snapshot goes; with the origin of the head if that is a further one. */
interface Target extends ReceiveTarget {
  readonly head: string;
  readonly origin?: string;
}

/** Returns the name of the snapshot in the pool. */
async function takeInNew(
  pool: ZfsPool,
  wanted: ReceivedSnapshot,
  { points, source, signal }: StorageCall & { readonly points: readonly StreamPoint[]; readonly source: Readable },
): Promise<string> {
  const root = pool.layout.session(wanted.token);
  if (points.some(({ name }) => name.endsWith(`@${wanted.name}`)))
    throw invalidArgument("snapshot", "the name is that of another snapshot");
  if (unfinishedIn(points).length > 0) await removeUnfinished(pool, root, { signal });
  const { guid, parentGuid } = wanted;
  const parent = parentGuid === null ? undefined : await findParent(pool, { points, guid: parentGuid, signal });
  const target = async (begun: BegunStream): Promise<Target> => {
    const head = begun.isClone ? undefined : headThatEndsAt(pool, points, parent);
    if (head !== undefined) return { args: [`${head}@${wanted.name}`], head };
    const name = freeHead(pool, points, root);
    const fresh = { parent: root, name, snapshot: wanted.name, origin: parent, settings: headSettings(pool, name) };
    return { ...(await prepareDataset(pool, fresh, { signal })), head: name, ...(parent && { origin: parent }) };
  };
  const expected = { guid, parentGuid, target };
  const { head, origin } = await takeIn(pool, source, { expected, signal }).catch(async (thrown: unknown) => {
    await forgetDataset(pool, root);
    throw hasReason(thrown, "POOL_FULL") ? await whatIsFull(pool, root, thrown) : thrown;
  });
  const snapshot = `${head}@${wanted.name}`;
  await verifyReceived(pool, { snapshot, guid, ...(origin && { origin }) }, { signal });
  return snapshot;
}

/** The name of the snapshot in the pool that is of this guid: one of the session itself, or a base. */
async function findParent(
  pool: ZfsPool,
  { points, guid, signal }: StorageCall & { readonly points: readonly StreamPoint[]; readonly guid: string },
): Promise<string> {
  checkGuid(guid);
  const own = points.find((point) => point.name.includes("@") && point.isOurs && point.guid === guid);
  if (own !== undefined) return own.name;
  const base = (await findBases(pool, signal)).find((found) => found.guid === guid);
  if (base === undefined) throw snapshotNotFound();
  return base.snapshot;
}

/** The head of received snapshots whose last one this is, if nothing looks at it. */
function headThatEndsAt(
  { mounts, layout }: ZfsPool,
  points: readonly StreamPoint[],
  snapshot: string | undefined,
): string | undefined {
  if (snapshot === undefined) return undefined;
  const dataset = filesystemOf(snapshot);
  const ref = headOf(layout, dataset);
  const last = points.findLast(({ name }) => name.startsWith(`${dataset}@`));
  const isReceived = points.some(({ name, isReceived: received }) => name === dataset && received);
  if (ref === undefined || !isReceived || last?.name !== snapshot) return undefined;
  return mounts.isMounted({ dataset, path: layout.headMount(ref) }) ? undefined : dataset;
}

/** The smallest generation that is free: the live head's comes later and is above all of them. */
function freeHead({ layout }: ZfsPool, points: readonly StreamPoint[], root: string): string {
  const taken = new Set(points.map(({ name }) => name));
  for (let generation = 1; ; generation += 1) {
    const name = `${root}/g${generation}`;
    if (!taken.has(name) || headOf(layout, name) === undefined) return name;
  }
}

/** Closed to writing: an increment goes only where nothing was written since the last one. */
function headSettings({ layout }: ZfsPool, dataset: string): readonly string[] {
  const head = headOf(layout, dataset);
  const path = head === undefined ? "none" : layout.headMount(head);
  return [...FILE_PROPERTIES, "readonly=on", `mountpoint=${path}`, `${RECEIVED_PROPERTY}=yes`];
}

/** Zfs says "out of space" for both: the session's own bound, and the pool. */
async function whatIsFull({ datasets, layout }: ZfsPool, root: string, thrown: SandboxError): Promise<unknown> {
  const signal = AbortSignal.timeout(10_000);
  const [session, all] = await Promise.all([datasets.find(root, signal), datasets.find(layout.sessions, signal)]);
  if (session === undefined || all === undefined || session.availableBytes >= all.availableBytes) return thrown;
  const message = "the session's snapshots use up its outer quota";
  return new SandboxError("SNAPSHOT_SPACE_EXHAUSTED", message, { cause: thrown });
}
