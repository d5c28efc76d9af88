import { readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { hasErrno, hasReason, SandboxError } from "@turnbox/core";
import type { HeadRef } from "../storage.ts";
import { type DaemonCondition, examineDaemon, reviveDaemon } from "./daemon.ts";
import { Datasets } from "./datasets.ts";
import { detectFlavor } from "./flavor.ts";
import { headOf, type Layout } from "./layout.ts";
import type { MountTarget } from "./mounts.ts";
import { createKnownOrigins } from "./origins.ts";
import type { PoolGate } from "./pool-gate.ts";
import { ensurePool, readPoolStatus } from "./pool.ts";
import { sweepViews } from "./view-datasets.ts";
import type { ZfsPool, ZfsTools } from "./zfs-pool.ts";

export interface OpeningOptions {
  readonly tools: ZfsTools;
  readonly layout: Layout;
  readonly poolSizeBytes: number;
  readonly gate: PoolGate;
  /** Names of the views that are open now. */
  readonly liveViews: ReadonlySet<string>;
  /** Called with the heads that were mounted again, before they are forgotten. */
  readonly onRemounted?: ((heads: readonly HeadRef[]) => Promise<void>) | undefined;
}

/** OpenZFS is part of the kernel: it does not die alone. */
const WELL: DaemonCondition = { presence: "answers", lost: [] };

/**
 * Starts the daemon, opens the pool and mounts what was mounted. The gate is closed before anything that other operations
 * may use is removed, and the caller opens it again; if this throws, the gate stays as it is by then.
 */
export async function openPool(
  { tools, layout, poolSizeBytes, gate, liveViews, onRemounted }: OpeningOptions,
  signal: AbortSignal,
): Promise<{ readonly pool: ZfsPool; readonly remounted: readonly HeadRef[] }> {
  const { zfs, clock } = tools;
  const flavor = await detectFlavor(zfs, signal);
  const daemon = { ...tools, layout };
  const condition = flavor === "zfs-fuse" ? await examineDaemon(daemon, signal) : WELL;
  const record = new LostMounts(layout.poolDirectory);
  const lost = byPath([...(await record.read()), ...condition.lost]);
  if (condition.presence === "absent" || lost.length > 0) await gate.close();
  if (condition.lost.length > 0) await record.write(lost);
  await reviveDaemon(daemon, condition, signal);
  await ensurePool({ zfs, layout, sizeBytes: poolSizeBytes }, signal);
  const datasets = new Datasets({ zfs, layout, clock, flavor });
  const { sizeBytes: poolBytes } = await readPoolStatus({ zfs, layout, flavor }, signal);
  const known = { sessionDatasets: new Map(), origins: createKnownOrigins(), poolBytes };
  const pool = { ...tools, layout, flavor, datasets, ...known };
  const views = new Set([...liveViews].map((name) => layout.view(name)));
  const remounted = await mountAgain(
    pool,
    lost.filter(({ dataset }) => isMountedAgain(dataset, layout, views)),
    signal,
  );
  if (remounted.length > 0) await onRemounted?.(remounted);
  await record.clear();
  await sweepViews(pool, liveViews, signal);
  return { pool, remounted };
}

/** Heads and journals are, and views that are open. Bases are not: nothing reads them there. */
function isMountedAgain(dataset: string, layout: Layout, views: ReadonlySet<string>): boolean {
  return views.has(dataset) || dataset.startsWith(`${layout.journals}/`) || headOf(layout, dataset) !== undefined;
}

/**
 * Mounts what was mounted before the daemon died, one by one. Returns the heads among it. A mount point that is still in
 * use, for example by a container, is left for its next use, so that it does not block all others.
 */
async function mountAgain(
  pool: ZfsPool,
  lost: readonly MountTarget[],
  signal: AbortSignal,
): Promise<readonly HeadRef[]> {
  const heads: HeadRef[] = [];
  const paths: string[] = [];
  for (const target of lost) {
    if ((await pool.datasets.find(target.dataset, signal)) === undefined) continue;
    const head = headOf(pool.layout, target.dataset);
    if (head !== undefined) heads.push(head);
    try {
      await pool.mounts.mount(target, signal);
      paths.push(target.path);
    } catch (thrown) {
      if (!hasReason(thrown, "STORAGE_UNAVAILABLE") || thrown.metadata["failure"] !== "busy") throw thrown;
    }
  }
  const alive = await pool.mounts.answering(paths, signal);
  const silent = paths.filter((path) => !alive.has(path));
  if (silent.length > 0)
    throw new SandboxError(
      "STORAGE_UNAVAILABLE",
      `${silent.length} of ${paths.length} mounts do not answer after a mount`,
    );
  return heads;
}

/** One for each path: a path mounted over is in the table several times. */
function byPath(targets: readonly MountTarget[]): readonly MountTarget[] {
  return [...new Map(targets.map((target) => [target.path, target])).values()];
}

/**
 * The record of what was mounted when the daemon died and is not mounted again yet. It is written before the dead mounts
 * are removed: after that nothing else knows them, and opening may fail half-way, or the service die.
 */
class LostMounts {
  readonly #path: string;

  constructor(directory: string) {
    this.#path = join(directory, "lost-mounts.json");
  }

  async read(): Promise<readonly MountTarget[]> {
    try {
      return JSON.parse(await readFile(this.#path, "utf8")) as readonly MountTarget[];
    } catch (thrown) {
      if (hasErrno(thrown, "ENOENT")) return [];
      throw thrown;
    }
  }

  async write(targets: readonly MountTarget[]): Promise<void> {
    await writeFile(`${this.#path}.new`, JSON.stringify(targets), { mode: 0o600 });
    await rename(`${this.#path}.new`, this.#path);
  }

  async clear(): Promise<void> {
    await rm(this.#path, { force: true });
  }
}
