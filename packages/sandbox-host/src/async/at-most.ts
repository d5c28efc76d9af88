import type { Clock } from "@turnbox/core";

/** Waits for the work for at most `ms`, and returns which of the two ended first. A failure of the work counts as its end. */
export async function atMost(clock: Clock, ms: number, work: Promise<unknown>): Promise<"ended" | "goes_on"> {
  const over = new AbortController();
  const time = clock.sleep(ms, { signal: over.signal }).then(
    () => "goes_on" as const,
    () => "goes_on" as const,
  );
  const end = (): "ended" => "ended";
  const first = await Promise.race([work.then(end, end), time]);
  over.abort();
  return first;
}
