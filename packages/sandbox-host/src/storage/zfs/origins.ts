import { hasReason } from "@turnbox/core";
import { baseNotFound, checkBase, checkSnapshot, snapshotNotFound } from "../names.ts";
import type { Origin, StorageCall } from "../storage.ts";
import { findSnapshot } from "./snapshots.ts";
import type { KnownOrigins, ResolvedOrigin, ZfsPool } from "./zfs-pool.ts";

/** Beyond these, those that were noted first are looked up again. */
const MAX_KNOWN = 10_000;

export function createKnownOrigins(): KnownOrigins {
  const known = new Map<string, ResolvedOrigin>();
  return {
    find: (origin) => known.get(keyOf(origin)),
    note: (origin, resolved) => {
      known.set(keyOf(origin), resolved);
      const [first] = known.keys();
      if (known.size > MAX_KNOWN && first !== undefined) known.delete(first);
    },
  };
}

function keyOf(origin: Origin): string {
  return origin.kind === "base"
    ? `${origin.base.name}@${origin.base.digest}`
    : `${origin.snapshot.token}/${origin.snapshot.name}`;
}

/** What the work has to know of its origin: its name, or also how much it refers to. */
type Need = "name" | "size";

/**
 * Does what needs an origin's name. A promotion in the origin's own session moves a snapshot to another head at any time,
 * and one that was known may have gone, so if it is not found it is looked up once more.
 */
export async function withOrigin<T>(
  pool: ZfsPool,
  origin: Origin,
  options: StorageCall & { readonly need: Need; readonly work: (from: ResolvedOrigin) => Promise<T> },
): Promise<T> {
  const { signal, need, work } = options;
  const known = pool.origins.find(origin);
  const isEnough = known !== undefined && (need === "name" || known.referencedBytes !== undefined);
  const from = isEnough ? known : await resolveOrigin(pool, origin, signal);
  try {
    return await work(from);
  } catch (thrown) {
    if (!hasReason(thrown, "SNAPSHOT_NOT_FOUND")) throw thrown;
    const moved = await resolveOrigin(pool, origin, signal);
    if (moved.snapshot === from.snapshot) throw thrown;
    return await work(moved);
  }
}

export async function resolveOrigin(
  pool: ZfsPool,
  origin: Origin,
  signal: AbortSignal,
): Promise<ResolvedOrigin & { readonly referencedBytes: number }> {
  const { name: snapshot, referencedBytes } = await lookUp(pool, origin, signal);
  const resolved = { snapshot, referencedBytes };
  pool.origins.note(origin, resolved);
  return resolved;
}

async function lookUp(pool: ZfsPool, origin: Origin, signal: AbortSignal) {
  if (origin.kind === "base") {
    checkBase(origin.base);
    const base = await pool.datasets.find(pool.layout.baseSnapshot(origin.base), signal);
    if (base === undefined) throw baseNotFound(origin.base);
    return base;
  }
  checkSnapshot(origin.snapshot);
  const snapshot = await findSnapshot(pool, origin.snapshot, signal);
  if (snapshot === undefined) throw snapshotNotFound();
  return snapshot;
}
