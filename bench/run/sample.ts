import { setTimeout as delay } from "node:timers/promises";

/** How long it took, in milliseconds. */
export async function timed(work: () => Promise<unknown>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}

/** One sample: does whatever it takes, and answers with the time of what counts. */
export type Sample = () => Promise<number>;

export interface Sides {
  readonly ours: Sample;
  readonly floor?: Sample;
}

export interface Pace {
  readonly count: number;
  readonly signal: AbortSignal;
  /** Before each sample. */
  readonly pauseMs?: number;
  /** How many of one side come in a row; 1 unless given. */
  readonly block?: number;
  /** Thrown away at the beginning, of each side; 2 unless given. */
  readonly warmUp?: number;
}

/** Both sides in turns, so that whatever else the machine does hits both alike. */
export async function interleave(sides: Sides, pace: Pace): Promise<{ ours: number[]; floor?: number[] }> {
  const { count, signal, pauseMs = 0, block = 1, warmUp = 2 } = pace;
  const ours: number[] = [];
  const floor: number[] = [];
  const take = async (sample: Sample, into: number[], times: number): Promise<void> => {
    for (let index = 0; index < times; index += 1) {
      signal.throwIfAborted();
      if (pauseMs > 0) await delay(pauseMs, undefined, { signal });
      into.push(await sample());
    }
  };
  await take(sides.ours, [], warmUp);
  if (sides.floor !== undefined) await take(sides.floor, [], warmUp);
  while (ours.length < count) {
    const times = Math.min(block, count - ours.length);
    await take(sides.ours, ours, times);
    if (sides.floor !== undefined) await take(sides.floor, floor, times);
  }
  return sides.floor === undefined ? { ours } : { ours, floor };
}

/** Asks until the answer is yes. */
export async function until(what: string, ask: () => Promise<boolean> | boolean, limitMs = 120_000): Promise<void> {
  const deadlineMs = performance.now() + limitMs;
  while (!(await ask())) {
    if (performance.now() > deadlineMs) throw new Error(`not within ${limitMs / 1000} s: ${what}`);
    await delay(20);
  }
}
