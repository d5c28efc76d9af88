import type { Clock } from "@turnbox/core";

/** Waits for the work, but no longer than this, and says which it was. How the work ends is not this function's matter. */
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
