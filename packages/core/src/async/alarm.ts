import type { Clock } from "./clock.ts";

/** Nobody sees it: a reason of its own would be made, with its stack, each time. */
const OFF = new Error("the alarm was turned off");

/**
 * Calls `ring` after `ms`, unless what it answers with is called before. For what is set with every call and hardly ever
 * rings: a sleep is a promise and a signal, and costs many times as much.
 */
export function setAlarm(clock: Clock, ms: number, ring: () => void): () => void {
  if (clock.alarm !== undefined) return clock.alarm(ms, ring);
  const off = new AbortController();
  clock.sleep(ms, { signal: off.signal }).then(ring, () => undefined);
  return () => {
    off.abort(OFF);
  };
}
