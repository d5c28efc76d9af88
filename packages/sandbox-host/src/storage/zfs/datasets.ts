import { type Clock, SandboxError } from "@turnbox/core";
import type { Marks } from "../storage.ts";
import { retryWhileBusy } from "./busy.ts";
import { storageError } from "./failure.ts";
import type { Flavor } from "./flavor.ts";
import type { Layout } from "./layout.ts";
import { type ClonedFilesystem, type Lineage, toLineage } from "./lineage.ts";
import { fromProperties, HOME_PROPERTY } from "./marks.ts";
import { parseBytes, parseColumns, parseProperties, type Property } from "./parse.ts";
import type { Outcome, ZfsCommand } from "./zfs-command.ts";

/** One filesystem or snapshot, as it was when looked at. */
export interface Dataset {
  readonly name: string;
  readonly kind: "filesystem" | "snapshot";
  readonly createdAtMs: number;
  /** The pool's own order of events; seconds are too coarse. */
  readonly createdTxg: number;
  readonly usedBytes: number;
  readonly referencedBytes: number;
  readonly availableBytes: number;
  /** 0 is no bound. */
  readonly quotaBytes: number;
  readonly refquotaBytes: number;
  /** The snapshot it was cloned from; absent where it was not. */
  readonly origin?: string;
}

export interface MarkedDataset extends Dataset {
  readonly marks: Marks;
}

const COLUMNS = ["-o", "name,property,source,value"] as const;
const NUMBERS = `creation,createtxg,used,referenced,available,quota,refquota,origin,${HOME_PROPERTY}`;
const DESTROY_DEADLINE_MS = 120_000;
/**
 * zfs-fuse makes a dataset first and gives it its properties after that, also where whoever asked has left: one without a
 * mark may be about to get it.
 */
const UNMARKED_PATIENCE_MS = 3000;
const UNMARKED_PAUSE_MS = 50;

export interface DatasetsOptions {
  readonly zfs: ZfsCommand;
  readonly layout: Layout;
  readonly clock: Clock;
  readonly flavor: Flavor;
}

/** Looking at datasets and ending them. Only what carries this home's mark is answered or destroyed. */
export interface Datasets {
  /** The dataset, or undefined where there is none of ours. One of somebody else's is `STORAGE_UNAVAILABLE`. */
  find(name: string, signal: AbortSignal): Promise<Dataset | undefined>;
  /** The same, with its marks. */
  findMarked(name: string, signal: AbortSignal): Promise<MarkedDataset | undefined>;
  /** The dataset and all below it that is ours, in the order of their making; nothing where it is not there. */
  list(root: string, signal: AbortSignal): Promise<readonly Dataset[]>;
  /** The same, with their marks. */
  tree(root: string, signal: AbortSignal): Promise<readonly MarkedDataset[]>;
  /** Bytes taken by each of our datasets directly below the dataset, snapshots and descendants included. */
  usedBytesOfChildren(root: string, signal: AbortSignal): Promise<ReadonlyMap<string, number>>;
  /** Names of the dataset and of all below it that is ours: one property of each is looked at, and nothing else. */
  ownNames(root: string, signal: AbortSignal): Promise<readonly string[]>;
  /** What descends from what at the dataset and below, ours or not; the rest of the pool is not looked at. */
  lineage(root: string, signal: AbortSignal): Promise<Lineage>;
  /** Every filesystem below the dataset, ours or not. */
  origins(root: string, signal: AbortSignal): Promise<readonly ClonedFilesystem[]>;
  /** Ends a dataset that `find` has answered. `reach`: alone, or with its snapshots. A dataset that is gone is done. */
  destroy(name: string, options: DestroyOptions): Promise<Exclude<Outcome, { kind: "unknown" }>>;
}

export interface DestroyOptions {
  readonly reach: "alone" | "with-snapshots";
  readonly patienceMs: number;
  readonly signal: AbortSignal;
}

export function createDatasets({ zfs, layout, clock, flavor }: DatasetsOptions): Datasets {
  /** Looking changes nothing, so what was not answered is asked once more. */
  const ask = async (args: readonly string[], signal: AbortSignal): Promise<Outcome> => {
    const outcome = await zfs.attempt({ program: "zfs", args }, signal);
    return outcome.kind === "unknown" && !signal.aborted
      ? await zfs.attempt({ program: "zfs", args }, signal)
      : outcome;
  };

  const get = async (
    args: readonly string[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, ReadonlyMap<string, Property>>> => {
    const outcome = await ask(["get", "-Hp", ...COLUMNS, ...args], signal);
    return isMissing(outcome) ? new Map() : parseProperties(answered(outcome));
  };

  /** A second call, beside the one for numbers: `all` is the only way to ask for names one does not know. */
  const getMarks = async (args: readonly string[], signal: AbortSignal): Promise<(name: string) => Marks> => {
    const local = await get(["-s", "local", ...args.slice(0, -1), "all", ...args.slice(-1)], signal);
    return (name) => fromProperties(local.get(name) ?? new Map());
  };

  const find: Datasets["find"] = async (name, signal) => {
    const untilMs = clock.monotonicMs() + UNMARKED_PATIENCE_MS;
    for (;;) {
      const properties = (await get([NUMBERS, name], signal)).get(name);
      if (properties === undefined) return undefined;
      if (isOurs(properties, layout)) return toDataset(name, properties);
      if (flavor === "openzfs" || isMarked(properties) || clock.monotonicMs() >= untilMs) {
        throw new SandboxError(
          "STORAGE_UNAVAILABLE",
          "a dataset of this name is in the pool, but is not this home's; it is left alone",
        );
      }
      await clock.sleep(UNMARKED_PAUSE_MS, { signal });
    }
  };

  const findMarked: Datasets["findMarked"] = async (name, signal) => {
    const [dataset, marksOf] = await Promise.all([find(name, signal), getMarks([name], signal)]);
    return dataset === undefined ? undefined : { ...dataset, marks: marksOf(name) };
  };

  const list: Datasets["list"] = async (root, signal) =>
    [...(await get(["-r", NUMBERS, root], signal))]
      .filter(([, properties]) => isOurs(properties, layout))
      .map(([name, properties]) => toDataset(name, properties))
      .sort((left, right) => left.createdTxg - right.createdTxg || compare(left.name, right.name));

  const tree: Datasets["tree"] = async (root, signal) => {
    const [listed, marksOf] = await Promise.all([list(root, signal), getMarks(["-r", root], signal)]);
    return listed.map((dataset) => ({ ...dataset, marks: marksOf(dataset.name) }));
  };

  const columns = async (args: readonly string[], signal: AbortSignal): Promise<readonly (readonly string[])[]> => {
    const outcome = await ask(["list", "-H", "-r", ...args], signal);
    return isMissing(outcome) ? [] : parseColumns(answered(outcome));
  };

  const isGone = async (name: string, signal: AbortSignal): Promise<boolean> =>
    isMissing(await zfs.attempt({ program: "zfs", args: ["list", "-H", "-o", "name", name] }, signal));

  return {
    find,
    findMarked,
    list,
    tree,
    usedBytesOfChildren: async (root, signal) => {
      const children = [...(await get(["-d", "1", `used,${HOME_PROPERTY}`, root], signal))].filter(
        ([name, properties]) => name.startsWith(`${root}/`) && isOurs(properties, layout),
      );
      return new Map(children.map(([name, properties]) => [name, parseBytes(properties.get("used")?.value)]));
    },
    ownNames: async (root, signal) =>
      [...(await get(["-r", HOME_PROPERTY, root], signal))].flatMap(([name, properties]) =>
        isOurs(properties, layout) ? [name] : [],
      ),
    lineage: async (root, signal) =>
      toLineage(await columns(["-t", "filesystem,snapshot", "-o", "name,origin,numclones", root], signal)),
    origins: async (root, signal) =>
      (await columns(["-t", "filesystem", "-o", "name,origin", root], signal)).flatMap(([name, origin]) =>
        name === undefined || origin === undefined ? [] : [{ name, origin }],
      ),
    destroy: async (name, { reach, patienceMs, signal }) => {
      const args = ["destroy", ...(reach === "with-snapshots" ? ["-r"] : []), name];
      const change = {
        program: "zfs",
        args,
        deadlineMs: DESTROY_DEADLINE_MS,
        doing: "destroying",
        isDone: (probe: AbortSignal) => isGone(name, probe),
      } as const;
      const outcome = await retryWhileBusy(() => zfs.change(change, signal), { clock, flavor, patienceMs, signal });
      return isMissing(outcome) ? { kind: "done", stdout: "" } : outcome;
    },
  };
}

function isMissing(outcome: Outcome): boolean {
  return outcome.kind === "refused" && outcome.failure === "not-found";
}

function answered(outcome: Outcome): string {
  if (outcome.kind === "done") return outcome.stdout;
  if (outcome.kind === "refused") throw storageError("looking at datasets", outcome);
  const why = SandboxError.from(outcome.cause).message;
  throw new SandboxError("STORAGE_UNAVAILABLE", `looking at datasets was not answered: ${why}`, {
    cause: outcome.cause,
  });
}

/** By its own mark; one that is only inherited does not count. */
function isOurs(properties: ReadonlyMap<string, Property>, layout: Layout): boolean {
  const mark = properties.get(HOME_PROPERTY);
  return mark?.value === layout.home && mark.source === "local";
}

/** By whomever. */
function isMarked(properties: ReadonlyMap<string, Property>): boolean {
  return properties.get(HOME_PROPERTY)?.source === "local";
}

function toDataset(name: string, properties: ReadonlyMap<string, Property>): Dataset {
  const bytes = (property: string): number => parseBytes(properties.get(property)?.value);
  const origin = properties.get("origin")?.value ?? "-";
  return {
    name,
    kind: name.includes("@") ? "snapshot" : "filesystem",
    createdAtMs: bytes("creation") * 1000,
    createdTxg: bytes("createtxg"),
    usedBytes: bytes("used"),
    referencedBytes: bytes("referenced"),
    availableBytes: bytes("available"),
    quotaBytes: bytes("quota"),
    refquotaBytes: bytes("refquota"),
    ...(origin === "-" ? {} : { origin }),
  };
}

function compare(left: string, right: string): number {
  return left < right ? -1 : left > right ? 1 : 0;
}
