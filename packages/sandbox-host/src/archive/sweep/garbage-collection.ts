import { type Call, type Clock, createDeadline, hasReason, SandboxError } from "@turnbox/core";
import { MAX_PAGE, type ObjectStore, type PutCondition } from "../../object-store/object-store.ts";
import { GRACE_MS } from "../format.ts";
import type { ManifestStore } from "../manifest/manifest-store.ts";
import { readSweepList } from "../sweep-list/await-sweep.ts";
import { encodeSweepList, isVoid, MAX_LISTED, SWEEP_LIST_KEY } from "../sweep-list/sweep-list.ts";
import { type Candidate, keysOf, listCandidates, totalOf } from "./candidates.ts";
import { DigestSet, END_OF_DIGESTS } from "./digest-set.ts";
import { markAll, type UnreadableManifest } from "./mark.ts";

/** How long a garbage collection may remove what it has listed. */
const SWEEP_MS = 3_600_000;
/** Within this, a removal ends. It is less than `CLOCK_MARGIN_MS`. */
const REMOVAL_MS = 60_000;
/** How far a list of the store may be behind. */
const SETTLE_MS = 60_000;
const CAPACITY = 1024 * 1024;

export interface GarbageCollectionOptions {
  readonly store: ObjectStore;
  readonly manifests: ManifestStore;
  readonly clock: Clock;
  /** Digests in memory at once, 32 bytes each; with more parts it takes several rounds. Default 1,048,576. */
  readonly capacity?: number;
  /** Parts of one sweep list. Default and most 32,768. */
  readonly listed?: number;
}

export interface CollectOptions {
  /** Parts that are younger stay. Default, and least for what writers rely on, 24 h. */
  readonly graceMs?: number;
  /** Counts what would be removed, and removes nothing. */
  readonly dryRun?: boolean;
}

export interface SweepReport {
  readonly manifests: number;
  /** Parts that were removed, or that would be with `dryRun`. */
  readonly parts: number;
  readonly bytes: number;
  /** If there is one, nothing was removed since it was found. */
  readonly unreadable: readonly UnreadableManifest[];
}

interface Round {
  readonly call: Call;
  readonly beforeMs: number;
  readonly isDry: boolean;
}

/**
 * Removes parts that no manifest names and that are older than the grace time. Of several at once all but one fail with
 * `ARCHIVE_CHANGED`. docs/ARCHIVE.md says why no part is removed that a manifest names, whenever that is written.
 */
export class GarbageCollection {
  readonly #options: Required<GarbageCollectionOptions>;

  constructor(options: GarbageCollectionOptions) {
    this.#options = { capacity: CAPACITY, listed: MAX_LISTED, ...options };
  }

  async collect({ graceMs = GRACE_MS, dryRun = false }: CollectOptions, call: Call): Promise<SweepReport> {
    const { clock, capacity } = this.#options;
    const round: Round = { call, beforeMs: clock.nowMs() - graceMs, isDry: dryRun };
    const report = { manifests: 0, parts: 0, bytes: 0 };
    for (let start = 0; start < END_OF_DIGESTS; ) {
      const marked = new DigestSet({ start, capacity });
      const mark = (sha256: string): void => marked.add(Buffer.from(sha256, "hex"));
      const { manifests, unreadable } = await markAll({ ...this.#options, mark }, call);
      report.manifests = manifests;
      if (unreadable.length > 0) return { ...report, unreadable };
      const swept = await this.#sweepRange(marked, round);
      report.parts += swept.parts;
      report.bytes += swept.bytes;
      if (swept.unreadable.length > 0) return { ...report, unreadable: swept.unreadable };
      start = marked.end;
    }
    return { ...report, unreadable: [] };
  }

  async #sweepRange(marked: DigestSet, round: Round): Promise<Omit<SweepReport, "manifests">> {
    const report = { parts: 0, bytes: 0 };
    let candidates: Candidate[] = [];
    const sweep = async (): Promise<readonly UnreadableManifest[]> => {
      if (candidates.length === 0) return [];
      const swept = await this.#sweep(candidates, round);
      candidates = [];
      report.parts += swept.parts;
      report.bytes += swept.bytes;
      return swept.unreadable;
    };
    for await (const candidate of listCandidates({ ...this.#options, marked, beforeMs: round.beforeMs }, round.call)) {
      candidates.push(candidate);
      if (candidates.length < this.#options.listed) continue;
      const unreadable = await sweep();
      if (unreadable.length > 0) return { ...report, unreadable };
    }
    return { unreadable: await sweep(), ...report };
  }

  /** Says what is about to go, looks at all manifests again, and removes what none of them names now either. */
  async #sweep(candidates: readonly Candidate[], { call, isDry }: Round): Promise<Omit<SweepReport, "manifests">> {
    if (isDry) return { ...totalOf(candidates), unreadable: [] };
    const { clock } = this.#options;
    const untilMs = clock.nowMs() + SWEEP_MS;
    await this.#publish(candidates, untilMs, call);
    try {
      await clock.sleep(SETTLE_MS, call);
      const left = new Map(candidates.map((candidate) => [candidate.sha256, candidate]));
      const mark = (sha256: string): void => {
        left.delete(sha256);
      };
      const { unreadable } = await markAll({ ...this.#options, mark }, call);
      if (unreadable.length > 0) return { parts: 0, bytes: 0, unreadable };
      const doomed = [...left.values()];
      await this.#remove(doomed, untilMs, call);
      return { ...totalOf(doomed), unreadable: [] };
    } finally {
      // With the caller gone the list still has to go, or writers wait for it until it is void.
      using deadline = createDeadline({ clock, ms: REMOVAL_MS });
      if (clock.nowMs() + REMOVAL_MS < untilMs) await this.#options.store.delete([SWEEP_LIST_KEY], deadline);
    }
  }

  async #publish(candidates: readonly Candidate[], untilMs: number, call: Call): Promise<void> {
    const { store, clock } = this.#options;
    const present = await readSweepList(store, call);
    if (present !== undefined && !isVoid(present, clock.nowMs())) throw isRunning();
    const condition: PutCondition =
      present === undefined ? { kind: "absent" } : { kind: "matches", etag: present.etag };
    const digests = Buffer.concat(candidates.map(({ sha256 }) => Buffer.from(sha256, "hex")));
    try {
      await store.put(SWEEP_LIST_KEY, encodeSweepList({ untilMs, digests }), { condition }, call);
    } catch (failure) {
      throw hasReason(failure, "OBJECT_CHANGED", "OBJECT_NOT_FOUND") ? isRunning(failure) : failure;
    }
  }

  async #remove(doomed: readonly Candidate[], untilMs: number, { signal }: Call): Promise<void> {
    const { clock, store } = this.#options;
    for (let first = 0; first < doomed.length; first += MAX_PAGE) {
      signal.throwIfAborted();
      if (clock.nowMs() + REMOVAL_MS > untilMs)
        throw new SandboxError("DEADLINE_EXCEEDED", "the sweep took longer than its list holds");
      using deadline = createDeadline({ clock, ms: REMOVAL_MS, signal });
      await store.delete(keysOf(doomed.slice(first, first + MAX_PAGE)), deadline);
    }
  }
}

const isRunning = (cause?: unknown): SandboxError =>
  new SandboxError("ARCHIVE_CHANGED", "another garbage collection is running", { cause });
