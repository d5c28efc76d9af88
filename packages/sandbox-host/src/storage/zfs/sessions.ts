import { hasReason, SandboxError } from "@turnbox/core";
import { checkMarks, checkToken, firstRefquota, isViewSnapshot, sessionNotFound, snapshotInUse } from "../names.ts";
import type { Head, Marks, SessionInventory, SessionPresence, SessionSpec, StorageCall } from "../storage.ts";
import { storageError } from "./failure.ts";
import { cloneHead, endHead } from "./heads.ts";
import { endJournals } from "./journals.ts";
import { generationOf, shortName } from "./layout.ts";
import { clonedElsewhere, dependantsFirst } from "./lineage.ts";
import { markProperties, property, toProperties } from "./marks.ts";
import { withOrigin } from "./origins.ts";
import { findSessionDataset, outerQuota } from "./session-dataset.ts";
import { setProperties } from "./set-properties.ts";
import { dropReceivedBases } from "./stream/received-bases.ts";
import { beingReceived } from "./stream/points.ts";
import { type ResolvedOrigin, UNDO_DEADLINE_MS, type ZfsPool } from "./zfs-pool.ts";

/**
 * The agent's bound is a refquota, so that deleting files always frees room; the session's dataset has a wider plain quota
 * over all heads and snapshots.
 */
export async function createSession(pool: ZfsPool, spec: SessionSpec, { signal }: StorageCall): Promise<Head> {
  checkToken(spec.token);
  checkMarks(spec.marks);
  const { token, marks, origin } = spec;
  const isBounded = spec.quotaBytes !== undefined || spec.refquotaBytes !== undefined;
  const work = async (from: ResolvedOrigin): Promise<Head> => {
    const refquotaBytes = isBounded ? firstRefquota(spec, from.referencedBytes ?? 0) : undefined;
    const refquota = refquotaBytes === undefined ? {} : { refquotaBytes };
    try {
      await createSessionDataset(pool, { token, marks, refquotaBytes }, signal);
      const head = { token, generation: 1, origin, marks, ...refquota };
      return await cloneHead(pool, { ...head, from, leftover: "keep" }, signal);
    } catch (thrown) {
      await removeEmptySession(pool, token);
      throw thrown;
    }
  };
  const make = (need: "name" | "size"): Promise<Head> => withOrigin(pool, origin, { signal, need, work });
  if (spec.refquotaBytes === undefined) return await make(isBounded ? "size" : "name");
  // What was sealed within this bound is within it, so that the size is asked for only if the clone is refused.
  return await make("name").catch(async (thrown: unknown) => {
    if (!hasReason(thrown, "QUOTA_EXCEEDED")) throw thrown;
    return await make("size");
  });
}

export async function createSessionDataset(
  pool: ZfsPool,
  spec: Pick<SessionSpec, "token" | "marks"> & { readonly refquotaBytes: number | undefined },
  signal: AbortSignal,
): Promise<void> {
  const { zfs, layout, datasets, sessionDatasets } = pool;
  const name = layout.session(spec.token);
  const quotaBytes = outerQuota(pool, spec.refquotaBytes);
  const quota = quotaBytes === 0 ? [] : property("quota", String(quotaBytes));
  const settings = [
    ...property("mountpoint", "none"),
    ...property("canmount", "off"),
    ...quota,
    ...toProperties(layout.home, spec.marks),
  ];
  const isDone = async (probe: AbortSignal): Promise<boolean> => (await datasets.find(name, probe)) !== undefined;
  const outcome = await zfs.change(
    { program: "zfs", args: ["create", ...settings, name], doing: "making a session's dataset", isDone },
    signal,
  );
  if (outcome.kind === "refused" && outcome.failure !== "exists")
    throw storageError("making a session's dataset", outcome);
  if (outcome.kind === "done") sessionDatasets.set(spec.token, { quotaBytes });
  else await findSessionDataset(pool, spec.token, signal);
}

/** Undoes `createSessionDataset` if no head was made; zfs refuses to destroy one that holds anything, and it stays. */
async function removeEmptySession(
  { datasets, layout, limits, sessionDatasets }: ZfsPool,
  token: string,
): Promise<void> {
  sessionDatasets.delete(token);
  const signal = AbortSignal.timeout(UNDO_DEADLINE_MS);
  const name = layout.session(token);
  try {
    if ((await datasets.find(name, signal)) === undefined) return;
    await datasets.destroy(name, { scope: "alone", patienceMs: limits.busyPatienceMs, signal });
  } catch {
    // What is left is found by the inventory, and the same call again goes on from it.
  }
}

/**
 * All or nothing as far as other sessions are concerned: if one was cloned from this one, nothing is touched. A
 * head that stays busy is left unmounted, and the same call again goes on.
 */
export async function destroySession(pool: ZfsPool, token: string, { signal }: StorageCall): Promise<void> {
  checkToken(token);
  const { datasets, layout, limits, clock } = pool;
  pool.sessionDatasets.delete(token);
  const dataset = layout.session(token);
  const [present, lineage] = await Promise.all([datasets.list(dataset, signal), datasets.lineage(dataset, signal)]);
  const endOwnJournals = (): Promise<void> =>
    endJournals(pool, token, { patienceMs: limits.destroyPatienceMs, signal });
  if (present.length === 0) {
    // Ours is gone; one of another home is an error.
    await datasets.find(dataset, signal);
    await endOwnJournals();
    return;
  }
  const heads = lineage.filesystems.filter(({ name }) => name !== dataset);
  const isSent = pool.leases.startingWith(`${dataset}/`).length > 0;
  if (isSent || clonedElsewhere(lineage, heads).length > 0) throw snapshotInUse("the session");
  const ours = new Set([...present.map(({ name }) => name), ...(await beingReceived(pool, dataset, signal))]);
  if (heads.some(({ name }) => !ours.has(name) || generationOf(name) === undefined)) {
    throw new SandboxError(
      "STORAGE_UNAVAILABLE",
      "the session's dataset holds a dataset that is not this home's; it is left alone",
    );
  }
  await endOwnJournals();
  const startedMs = clock.monotonicMs();
  const patienceMs = (): number => Math.max(0, limits.destroyPatienceMs - (clock.monotonicMs() - startedMs));
  for (const { name } of dependantsFirst(heads)) {
    await endHead(pool, { token, generation: generationOf(name) ?? 0 }, { patienceMs: patienceMs(), signal });
  }
  const outcome = await datasets.destroy(dataset, { scope: "alone", patienceMs: patienceMs(), signal });
  if (outcome.kind === "refused") throw storageError("destroying a session's dataset", outcome);
  await dropReceivedBases(
    pool,
    heads.map(({ origin }) => origin),
    signal,
  );
}

export async function markSession(
  pool: ZfsPool,
  token: string,
  { marks, signal }: StorageCall & { readonly marks: Marks },
): Promise<void> {
  checkToken(token);
  checkMarks(marks);
  const dataset = pool.layout.session(token);
  if ((await pool.datasets.find(dataset, signal)) === undefined) throw sessionNotFound();
  await setProperties(pool, { dataset, settings: markProperties(marks), doing: "marking a session" }, signal);
}

export async function usedBytes(
  { datasets, layout }: ZfsPool,
  token: string,
  { signal }: StorageCall,
): Promise<number> {
  checkToken(token);
  const dataset = await datasets.find(layout.session(token), signal);
  if (dataset === undefined) throw sessionNotFound();
  return dataset.usedBytes;
}

export async function usedBytesOfAll(
  { datasets, layout }: ZfsPool,
  { signal }: StorageCall,
): Promise<ReadonlyMap<string, number>> {
  const children = await datasets.usedBytesOfChildren(layout.sessions, signal);
  return new Map([...children].map(([name, bytes]) => [name.slice(layout.sessions.length + 1), bytes]));
}

export async function inventory(pool: ZfsPool, { signal }: StorageCall): Promise<readonly SessionInventory[]> {
  const { datasets, layout } = pool;
  const tree = await datasets.tree(layout.sessions, signal);
  const marks = new Map(tree.map((dataset) => [dataset.name, dataset.marks]));
  const sessions = await joinSessions(pool, [...marks.keys()]);
  return sessions.map(({ token, heads, snapshots }) => ({
    token,
    marks: marks.get(layout.session(token)) ?? {},
    heads: heads.map((head) => ({ ...head, marks: marks.get(layout.head(head)) ?? {} })),
    snapshots,
  }));
}

/** Sessions, by the names of their datasets and snapshots. */
export async function joinSessions(
  { layout, mounts }: ZfsPool,
  names: readonly string[],
): Promise<readonly SessionPresence[]> {
  const mounted = new Set(mounts.below(layout.mountRoot).map(({ source }) => source));
  const tokenOf = (name: string): string => name.slice(layout.sessions.length + 1).split(/[/@]/)[0] ?? "";
  const bySession = Map.groupBy(
    names.filter((name) => name !== layout.sessions),
    tokenOf,
  );
  return [...bySession].flatMap(([token, ofIt]) =>
    ofIt.includes(layout.session(token)) ? [toPresence({ token, names: ofIt, mounted })] : [],
  );
}

function toPresence(found: {
  readonly token: string;
  readonly names: readonly string[];
  readonly mounted: ReadonlySet<string>;
}): SessionPresence {
  const { token, names, mounted } = found;
  const [snapshots, filesystems] = [names.filter(isSnapshot), names.filter((name) => !isSnapshot(name))];
  return {
    token,
    heads: filesystems.flatMap((name) => {
      const generation = generationOf(name);
      return generation === undefined
        ? []
        : [{ token, generation, mounted: mounted.has(name) ? "yes" : "no" } as const];
    }),
    snapshots: snapshots.map(shortName).filter((name) => !isViewSnapshot(name)),
  };
}

const isSnapshot = (name: string): boolean => name.includes("@");
