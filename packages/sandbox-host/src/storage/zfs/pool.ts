import { access, mkdir, open } from "node:fs/promises";
import { SandboxError } from "@turnbox/core";
import type { StorageStatus } from "../storage.ts";
import { type Patience, retryWhileBusy } from "./busy.ts";
import { storageError } from "./failure.ts";
import type { Flavor } from "./flavor.ts";
import type { Layout } from "./layout.ts";
import { HOME_PROPERTY, property, toProperties } from "./marks.ts";
import { parseBytes, parseColumns, parseHealth, parseProperties, parseVdevs } from "./parse.ts";
import type { Outcome, ZfsCommand } from "./zfs-command.ts";

const POOL_DEADLINE_MS = 120_000;
/** A status that comes late is of no use: the caller needs to know whether the pool serves now. */
const STATUS_DEADLINE_MS = 3000;
const SMALLEST_RESERVE_BYTES = 64 * 1024 * 1024;
const RESERVE_SHARE = 0.02;

export interface PoolOptions {
  readonly zfs: ZfsCommand;
  readonly layout: Layout;
  readonly sizeBytes: number;
}

/** Makes the home's pool serve: finds it imported, imports it, or makes it. A pool of another home is never touched. */
export async function ensurePool(options: PoolOptions, signal: AbortSignal): Promise<void> {
  const { zfs, layout } = options;
  if (!(await isImported(zfs, layout, signal)) && !(await importPool(zfs, layout, signal)))
    await createPool(options, signal);
  await assertOurs(zfs, layout, signal);
  await ensureDatasets(options, signal);
}

async function isImported(zfs: ZfsCommand, { pool }: Layout, signal: AbortSignal): Promise<boolean> {
  const outcome = await zfs.attempt({ program: "zpool", args: ["list", "-H", "-o", "name", pool] }, signal);
  if (outcome.kind === "done") return true;
  if (outcome.kind === "refused" && outcome.failure === "not-found") return false;
  if (outcome.kind === "refused") throw storageError("looking for the pool", outcome);
  throw new SandboxError("STORAGE_UNAVAILABLE", "looking for the pool was not answered", { cause: outcome.cause });
}

/** `false` if the image holds no pool of this name. */
async function importPool(zfs: ZfsCommand, layout: Layout, signal: AbortSignal): Promise<boolean> {
  if (!(await exists(layout.imagePath))) return false;
  const isDone = (probe: AbortSignal): Promise<boolean> => isImported(zfs, layout, probe);
  const args = ["import", "-d", layout.poolDirectory, "-o", "cachefile=none", layout.pool];
  const outcome = await zfs.change(
    { program: "zpool", args, deadlineMs: POOL_DEADLINE_MS, doing: "importing the pool", isDone },
    signal,
  );
  // An import that could not mount something is refused, and done.
  if (outcome.kind === "done" || (await isDone(signal))) return true;
  if (outcome.failure === "not-found" || /no pools available|no such pool/i.test(outcome.stderr)) return false;
  throw storageError("importing the pool", outcome);
}

/** Never with -f: an image that holds the remains of any pool is refused by zpool itself. */
async function createPool({ zfs, layout, sizeBytes }: PoolOptions, signal: AbortSignal): Promise<void> {
  await mkdir(layout.poolDirectory, { recursive: true, mode: 0o700 });
  {
    await using image = await open(layout.imagePath, "a", 0o600);
    if ((await image.stat()).size === 0) await image.truncate(sizeBytes);
  }
  const rootProperties = [
    "mountpoint=none",
    "canmount=off",
    "atime=off",
    "setuid=off",
    "devices=off",
    `${HOME_PROPERTY}=${layout.home}`,
  ];
  const args = [
    "create",
    "-o",
    "cachefile=none",
    ...rootProperties.flatMap((value) => ["-O", value]),
    layout.pool,
    layout.imagePath,
  ];
  const isDone = (probe: AbortSignal): Promise<boolean> => isImported(zfs, layout, probe);
  const outcome = await zfs.change(
    { program: "zpool", args, deadlineMs: POOL_DEADLINE_MS, doing: "making the pool", isDone },
    signal,
  );
  if (outcome.kind === "refused" && !(await isDone(signal))) throw storageError("making the pool", outcome);
}

/** A pool of our name that is made of something else, or marked as another home's, is not ours. */
async function assertOurs(zfs: ZfsCommand, { pool, home, imagePath }: Layout, signal: AbortSignal): Promise<void> {
  const status = await zfs.read("reading the pool", { program: "zpool", args: ["status", pool] }, signal);
  const marks = await zfs.read(
    "reading the pool",
    { program: "zfs", args: ["get", "-Hp", "-o", "value", HOME_PROPERTY, pool] },
    signal,
  );
  const vdevs = parseVdevs(status, pool);
  if (vdevs.length === 1 && vdevs[0] === imagePath && marks.trim() === home) return;
  throw new SandboxError(
    "STORAGE_UNAVAILABLE",
    `the pool ${pool} is imported, but is not this home's; it is left alone`,
    {
      metadata: { pool },
    },
  );
}

/** Ends the home's pool with all that is in it, for good. If it is not imported, its image is all there is of it. */
export async function destroyPool(
  { zfs, layout }: Pick<PoolOptions, "zfs" | "layout">,
  patience: Patience,
): Promise<void> {
  const { signal } = patience;
  const isDone = async (probe: AbortSignal): Promise<boolean> => !(await isImported(zfs, layout, probe));
  if (await isDone(signal)) return;
  await assertOurs(zfs, layout, signal);
  const doing = "destroying the pool";
  const change = {
    program: "zpool",
    args: ["destroy", layout.pool],
    deadlineMs: POOL_DEADLINE_MS,
    doing,
    isDone,
  } as const;
  const outcome = await retryWhileBusy(() => zfs.change(change, signal), patience);
  if (outcome.kind === "refused" && !(await isDone(signal))) throw storageError(doing, outcome);
}

async function ensureDatasets({ zfs, layout, sizeBytes }: PoolOptions, signal: AbortSignal): Promise<void> {
  const listing = await zfs.read(
    "listing datasets",
    { program: "zfs", args: ["list", "-H", "-d", "1", "-t", "filesystem", "-o", "name", layout.pool] },
    signal,
  );
  const present = new Set(parseColumns(listing).map(([name]) => name));
  const reserveBytes = Math.max(SMALLEST_RESERVE_BYTES, Math.floor(sizeBytes * RESERVE_SHARE));
  const wanted: readonly (readonly [string, readonly string[]])[] = [
    [layout.reserved, property("refreservation", String(reserveBytes))],
    [layout.bases, []],
    [layout.sessions, []],
    [layout.views, []],
    [layout.journals, []],
  ];
  for (const [dataset, more] of wanted.filter(([name]) => !present.has(name))) {
    const args = [
      "create",
      ...property("mountpoint", "none"),
      ...property("canmount", "off"),
      ...toProperties(layout.home, {}),
      ...more,
      dataset,
    ];
    const outcome = await zfs.change(
      { program: "zfs", args, doing: "making a dataset", isDone: () => Promise.resolve(false) },
      signal,
    );
    if (outcome.kind === "refused" && outcome.failure !== "exists") throw storageError("making a dataset", outcome);
  }
}

/** What the pool reports. A pool that does not answer is `unavailable`, not an error: callers ask to find that out. */
export async function readPoolStatus(
  { zfs, layout, flavor }: { readonly zfs: ZfsCommand; readonly layout: Layout; readonly flavor: Flavor },
  signal: AbortSignal,
): Promise<StorageStatus> {
  const columns = "name,property,source,value";
  const spaceArgs = ["get", "-Hp", "-o", columns, "used,available,usedbyrefreservation", layout.pool, layout.reserved];
  const ask = (program: "zfs" | "zpool", args: readonly string[]): Promise<Outcome> =>
    zfs.attempt({ program, args, deadlineMs: STATUS_DEADLINE_MS }, signal);
  const [health, space] = await Promise.all([
    // zfs-fuse does not know how fragmented its free space is.
    ask("zpool", ["list", "-H", "-o", flavor === "openzfs" ? "health,fragmentation" : "health", layout.pool]),
    ask("zfs", spaceArgs),
  ]);
  if (health.kind !== "done") return unavailable(reasonOf(health));
  if (space.kind !== "done") return unavailable(reasonOf(space));
  const { word, fragmentationPercent } = parseHealth(health.stdout);
  const datasets = parseProperties(space.stdout);
  const pool = datasets.get(layout.pool);
  const reserveBytes = parseBytes(datasets.get(layout.reserved)?.get("usedbyrefreservation")?.value);
  // The reserve is neither used nor available.
  const usedBytes = Math.max(0, parseBytes(pool?.get("used")?.value) - reserveBytes);
  const availableBytes = parseBytes(pool?.get("available")?.value);
  return {
    state: poolState(word),
    detail: word,
    sizeBytes: usedBytes + availableBytes,
    usedBytes,
    availableBytes,
    ...(fragmentationPercent === undefined ? {} : { fragmentationPercent }),
  };
}

export function unavailable(detail: string): StorageStatus {
  return { state: "unavailable", detail, sizeBytes: 0, usedBytes: 0, availableBytes: 0 };
}

function reasonOf(outcome: Exclude<Outcome, { kind: "done" }>): string {
  return outcome.kind === "refused" ? outcome.failure : "no answer";
}

/** Only two words mean that the pool serves; every other one, known or not, means that it does not. */
export function poolState(health: string): StorageStatus["state"] {
  if (health === "ONLINE") return "online";
  return health === "DEGRADED" ? "degraded" : "unavailable";
}

async function exists(path: string): Promise<boolean> {
  return await access(path).then(
    () => true,
    () => false,
  );
}
