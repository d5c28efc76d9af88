import { hasReason, SandboxError } from "@turnbox/core";
import type { HeadRef } from "../storage.ts";
import { type DaemonCondition, examineDaemon, reviveDaemon } from "./daemon.ts";
import { Datasets } from "./datasets.ts";
import { detectFlavor } from "./flavor.ts";
import { headOf, type Layout } from "./layout.ts";
import { createLostMounts } from "./lost-mounts.ts";
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
  /** Names of the views that somebody looks at now. */
  readonly liveViews: ReadonlySet<string>;
  /** Called with the heads that were mounted again, before they are forgotten. */
  readonly onRemounted?: ((heads: readonly HeadRef[]) => Promise<void>) | undefined;
}

/** OpenZFS is part of the kernel: it does not die alone. */
const WELL: DaemonCondition = { presence: "answers", lost: [] };

/**
 * Brings daemon, pool and mounts to where they serve. The gate is closed before anything that others may rely on is
 * taken away, and opened again by the caller; where this throws, it stays as it is by then.
 */
export async function openPool(
  { tools, layout, poolSizeBytes, gate, liveViews, onRemounted }: OpeningOptions,
  signal: AbortSignal,
): Promise<{ readonly pool: ZfsPool; readonly remounted: readonly HeadRef[] }> {
  const { zfs, clock } = tools;
  const flavor = await detectFlavor(zfs, signal);
  const daemon = { ...tools, layout };
  const condition = flavor === "zfs-fuse" ? await examineDaemon(daemon, signal) : WELL;
  const record = createLostMounts(layout.poolDirectory);
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

/** Bases are not: nothing reads them there. Views are, as long as they are looked at, and journals are. */
function isMountedAgain(dataset: string, layout: Layout, views: ReadonlySet<string>): boolean {
  return views.has(dataset) || dataset.startsWith(`${layout.journals}/`) || headOf(layout, dataset) !== undefined;
}

/**
 * Mounts what was mounted before the daemon died, one by one. Answers with the heads among it. One that somebody still
 * holds, a container on it for one, is left for its next use: it must not keep all others from being served.
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
