import { rm, stat, writeFile } from "node:fs/promises";
import type { Clock } from "@turnbox/core";
import type { Runtime } from "../runtime/runtime.ts";
import { heldMark, type LaunchedProcess } from "./launched-process.ts";

/** What the output of one process may take before the process is stopped for as long as it takes to make room. */
const HIGH_WATER_BYTES = 16 * 1024 * 1024;
/** How much of it is kept as the older part. */
const KEEP_BYTES = 16 * 1024 * 1024;
/** How long a reader that follows may hold the process up before it loses what it has not read. */
const READER_PATIENCE_MS = 10_000;
/** A journal that does not grow is passed over in up to so many rounds; the storage bounds it meanwhile. */
const MOST_PASSES = 4;
const POLL_MS = 20;
const SIGNAL_TIMEOUT_MS = 30_000;
const SIGCONT = 18;
const SIGSTOP = 19;

interface Seen {
  readonly bytes: number;
  readonly passes: number;
  left: number;
}

/** Keeps the journals of processes within a bound. A process is stopped while its journal is rotated. */
export class JournalBound {
  readonly #runtime: Runtime;
  readonly #clock: Clock;
  readonly #highWaterBytes: number;
  readonly #seen = new WeakMap<LaunchedProcess, Seen>();

  /** `highWaterBytes`: 16 MiB unless given. */
  constructor(deps: { readonly runtime: Runtime; readonly clock: Clock; readonly highWaterBytes?: number }) {
    this.#runtime = deps.runtime;
    this.#clock = deps.clock;
    this.#highWaterBytes = deps.highWaterBytes ?? HIGH_WATER_BYTES;
  }

  /** Lets a process go on that an earlier service has stopped, or that could not be let go on before. */
  async releaseHeld(process: LaunchedProcess): Promise<void> {
    if (process.held === "no") return;
    if ((await stat(heldMark(process)).catch(() => undefined)) !== undefined) await this.#release(process);
    process.held = "no";
  }

  /** Measures the journal in one round, unless it is passed over, and rotates it if it is over its bound. */
  async enforce(process: LaunchedProcess, call: { readonly signal: AbortSignal }): Promise<void> {
    if (!this.#isDue(process)) return;
    const liveBytes = await process.journal.liveBytes();
    this.#note(process, liveBytes);
    if (liveBytes < this.#highWaterBytes) return;
    if (process.terminal === null) await this.#hold(process);
    try {
      await this.#readersDone(process, call);
      await process.journal.rotate(Math.min(KEEP_BYTES, this.#highWaterBytes));
    } finally {
      if (process.terminal === null) await this.#release(process);
    }
  }

  async #hold(process: LaunchedProcess): Promise<void> {
    process.held = "unknown";
    await writeFile(heldMark(process), "", { mode: 0o600 });
    await this.#signal(process, SIGSTOP);
  }

  async #release(process: LaunchedProcess): Promise<void> {
    await this.#signal(process, SIGCONT);
    await rm(heldMark(process), { force: true });
    process.held = "no";
  }

  async #signal(process: LaunchedProcess, signal: number): Promise<void> {
    const call = { signal: AbortSignal.timeout(SIGNAL_TIMEOUT_MS) };
    await this.#runtime.signal(process.row.container, process.spawned, { signal, scope: "tree" }, call);
  }

  /** Settles when all readers that follow have read everything, or their time is over. */
  async #readersDone(process: LaunchedProcess, { signal }: { readonly signal: AbortSignal }): Promise<void> {
    const { end } = await process.journal.extent();
    const untilMs = this.#clock.monotonicMs() + READER_PATIENCE_MS;
    const isBehind = (): boolean => [...process.followers].some(({ position }) => position < end);
    while (isBehind() && this.#clock.monotonicMs() < untilMs && !signal.aborted) {
      await this.#clock.sleep(POLL_MS, { signal }).catch(() => undefined);
    }
  }

  #isDue(process: LaunchedProcess): boolean {
    const last = this.#seen.get(process);
    if (last === undefined || last.left === 0) return true;
    last.left -= 1;
    return false;
  }

  #note(process: LaunchedProcess, bytes: number): void {
    const last = this.#seen.get(process);
    const passes = last?.bytes === bytes ? Math.min(last.passes + 1, MOST_PASSES) : 0;
    this.#seen.set(process, { bytes, passes, left: passes });
  }
}
