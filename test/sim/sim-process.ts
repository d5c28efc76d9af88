import type { Clock } from "@turnbox/core";
import type { Timeline } from "./timeline.ts";

/** Where virtual time begins. */
export const EPOCH_MS = Date.UTC(2030, 0, 1);

/**
 * One run of an orchestrator. Everything from outside (answers, timers, calls) enters through it: a paused one gets it
 * all when it goes on, a dead one never does, so that whatever it was in the middle of stays undone.
 */
export class SimProcess {
  readonly name: string;
  readonly clock: Clock;
  readonly #timeline: Timeline;
  readonly #onDeath = new Set<() => void>();
  #state: "running" | "paused" | "dead" = "running";
  #held: (() => void)[] = [];

  constructor(options: { readonly name: string; readonly timeline: Timeline; readonly wallSkewMs: number }) {
    const { name, timeline, wallSkewMs } = options;
    this.name = name;
    this.#timeline = timeline;
    this.clock = {
      nowMs: () => EPOCH_MS + wallSkewMs + timeline.nowMs,
      monotonicMs: () => timeline.nowMs,
      sleep: (ms, { signal } = {}) => this.#sleep(ms, signal),
    };
  }

  get state(): "running" | "paused" | "dead" {
    return this.#state;
  }

  enter(run: () => void): void {
    if (this.#state === "running") run();
    else if (this.#state === "paused") this.#held.push(run);
  }

  pause(): void {
    if (this.#state === "running") this.#state = "paused";
  }

  resume(): void {
    if (this.#state !== "paused") return;
    this.#state = "running";
    const held = this.#held;
    this.#held = [];
    // One event for each, as an event loop would take them.
    for (const run of held) this.#timeline.after(0, () => this.enter(run));
  }

  /** What those outside notice at once; inside nothing runs any more. Answers how to leave. */
  onDeath(run: () => void): () => void {
    this.#onDeath.add(run);
    return () => void this.#onDeath.delete(run);
  }

  kill(): void {
    if (this.#state === "dead") return;
    this.#state = "dead";
    this.#held = [];
    for (const run of this.#onDeath) run();
  }

  #sleep(ms: number, signal: AbortSignal | undefined): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      if (signal?.aborted === true) {
        reject(signal.reason as Error);
        return;
      }
      const onAbort = (): void => {
        due.cancel();
        reject(signal?.reason as Error);
      };
      const due = this.#timeline.after(ms, () => {
        this.enter(() => {
          signal?.removeEventListener("abort", onAbort);
          resolve();
        });
      });
      signal?.addEventListener("abort", onAbort, { once: true });
    });
  }
}
