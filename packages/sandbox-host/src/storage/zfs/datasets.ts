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
  /** The snapshot it was cloned from; absent if it was not. */
  readonly origin?: string;
}

export interface MarkedDataset extends Dataset {
  readonly marks: Marks;
}

const COLUMNS = ["-o", "name,property,source,value"] as const;
const NUMBERS = `creation,createtxg,used,referenced,available,quota,refquota,origin,${HOME_PROPERTY}`;
const DESTROY_DEADLINE_MS = 120_000;
/**
 * zfs-fuse makes a dataset first and gives it its properties after that, also if the caller has gone: one without a
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

export interface DestroyOptions {
  /** Whether the dataset goes alone or with its snapshots. */
  readonly scope: "alone" | "with-snapshots";
  readonly patienceMs: number;
  readonly signal: AbortSignal;
}

type Properties = ReadonlyMap<string, Property>;

/** Reads datasets and destroys them. Only what carries this home's mark is returned or destroyed. */
export class Datasets {
  readonly #zfs: ZfsCommand;
  readonly #layout: Layout;
  readonly #clock: Clock;
  readonly #flavor: Flavor;

  constructor({ zfs, layout, clock, flavor }: DatasetsOptions) {
    this.#zfs = zfs;
    this.#layout = layout;
    this.#clock = clock;
    this.#flavor = flavor;
  }

  /** The dataset, or undefined if there is none of ours. A dataset of another home is `STORAGE_UNAVAILABLE`. */
  async find(name: string, signal: AbortSignal): Promise<Dataset | undefined> {
    const untilMs = this.#clock.monotonicMs() + UNMARKED_PATIENCE_MS;
    for (;;) {
      const properties = (await this.#get([NUMBERS, name], signal)).get(name);
      if (properties === undefined) return undefined;
      if (isOurs(properties, this.#layout)) return toDataset(name, properties);
      if (this.#flavor === "openzfs" || isMarked(properties) || this.#clock.monotonicMs() >= untilMs) {
        throw new SandboxError(
          "STORAGE_UNAVAILABLE",
          "a dataset of this name is in the pool, but is not this home's; it is left alone",
        );
      }
      await this.#clock.sleep(UNMARKED_PAUSE_MS, { signal });
    }
  }

  /** The dataset and all of ours below it, in the order of their creation; nothing if it is not there. */
  async list(root: string, signal: AbortSignal): Promise<readonly Dataset[]> {
    return [...(await this.#get(["-r", NUMBERS, root], signal))]
      .filter(([, properties]) => isOurs(properties, this.#layout))
      .map(([name, properties]) => toDataset(name, properties))
      .sort((left, right) => left.createdTxg - right.createdTxg || compare(left.name, right.name));
  }

  /** The same, with their marks. */
  async tree(root: string, signal: AbortSignal): Promise<readonly MarkedDataset[]> {
    // A second call, beside the one for numbers: `all` is the only way to ask for names one does not know.
    const [listed, local] = await Promise.all([
      this.list(root, signal),
      this.#get(["-s", "local", "-r", "all", root], signal),
    ]);
    return listed.map((dataset) => ({ ...dataset, marks: fromProperties(local.get(dataset.name) ?? new Map()) }));
  }

  /** Bytes taken by each of our datasets directly below the dataset, snapshots and descendants included. */
  async usedBytesOfChildren(root: string, signal: AbortSignal): Promise<ReadonlyMap<string, number>> {
    const children = [...(await this.#get(["-d", "1", `used,${HOME_PROPERTY}`, root], signal))].filter(
      ([name, properties]) => name.startsWith(`${root}/`) && isOurs(properties, this.#layout),
    );
    return new Map(children.map(([name, properties]) => [name, parseBytes(properties.get("used")?.value)]));
  }

  /** These properties of the dataset and of all below it, ours or not, by name; nothing if it is not there. */
  async properties(
    root: string,
    names: readonly string[],
    signal: AbortSignal,
  ): Promise<ReadonlyMap<string, ReadonlyMap<string, Property>>> {
    return await this.#get(["-r", names.join(","), root], signal);
  }

  /** Names of the dataset and of all of ours below it: one property of each is read, and nothing else. */
  async ownNames(root: string, signal: AbortSignal): Promise<readonly string[]> {
    return [...(await this.#get(["-r", HOME_PROPERTY, root], signal))].flatMap(([name, properties]) =>
      isOurs(properties, this.#layout) ? [name] : [],
    );
  }

  /** What descends from what at the dataset and below, ours or not; the rest of the pool is not read. */
  async lineage(root: string, signal: AbortSignal): Promise<Lineage> {
    return toLineage(await this.#columns(["-t", "filesystem,snapshot", "-o", "name,origin,numclones", root], signal));
  }

  /** Every filesystem below the dataset, ours or not. */
  async origins(root: string, signal: AbortSignal): Promise<readonly ClonedFilesystem[]> {
    return (await this.#columns(["-t", "filesystem", "-o", "name,origin", root], signal)).flatMap(([name, origin]) =>
      name === undefined || origin === undefined ? [] : [{ name, origin }],
    );
  }

  /** Destroys a dataset that `find` has returned. A dataset that is gone is done. */
  async destroy(
    name: string,
    { scope, patienceMs, signal }: DestroyOptions,
  ): Promise<Exclude<Outcome, { kind: "unknown" }>> {
    const change = {
      program: "zfs",
      args: ["destroy", ...(scope === "with-snapshots" ? ["-r"] : []), name],
      deadlineMs: DESTROY_DEADLINE_MS,
      doing: "destroying",
      isDone: (probe: AbortSignal) => this.#isGone(name, probe),
    } as const;
    const patience = { clock: this.#clock, flavor: this.#flavor, patienceMs, signal };
    const outcome = await retryWhileBusy(() => this.#zfs.change(change, signal), patience);
    return isMissing(outcome) ? { kind: "done", stdout: "" } : outcome;
  }

  /** Reading changes nothing, so a command of unknown outcome runs once more. */
  async #ask(args: readonly string[], signal: AbortSignal): Promise<Outcome> {
    const outcome = await this.#zfs.attempt({ program: "zfs", args }, signal);
    return outcome.kind === "unknown" && !signal.aborted
      ? await this.#zfs.attempt({ program: "zfs", args }, signal)
      : outcome;
  }

  async #get(args: readonly string[], signal: AbortSignal): Promise<ReadonlyMap<string, Properties>> {
    const outcome = await this.#ask(["get", "-Hp", ...COLUMNS, ...args], signal);
    return isMissing(outcome) ? new Map() : parseProperties(answered(outcome));
  }

  async #columns(args: readonly string[], signal: AbortSignal): Promise<readonly (readonly string[])[]> {
    const outcome = await this.#ask(["list", "-H", "-r", ...args], signal);
    return isMissing(outcome) ? [] : parseColumns(answered(outcome));
  }

  async #isGone(name: string, signal: AbortSignal): Promise<boolean> {
    return isMissing(await this.#zfs.attempt({ program: "zfs", args: ["list", "-H", "-o", "name", name] }, signal));
  }
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
export function isOurs(properties: ReadonlyMap<string, Property>, layout: Pick<Layout, "home">): boolean {
  const mark = properties.get(HOME_PROPERTY);
  return mark?.value === layout.home && mark.source === "local";
}

/** By this home or another one. */
function isMarked(properties: Properties): boolean {
  return properties.get(HOME_PROPERTY)?.source === "local";
}

function toDataset(name: string, properties: Properties): Dataset {
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
