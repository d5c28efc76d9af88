import type { Clock } from "@turnbox/core";

/** A host says something once a second; for so long it may say nothing. */
const STILL_MS = 10_000;
const LOOK_MS = 500;

/**
 * Settles when a host has given no sign of life for 10 s. Only a turning event loop of the host gives one, so this is neither a
 * slow answer nor a cut line.
 *
 * It is counted in looks, each of which is worth the pause before it and no more: time in which this process did not run itself,
 * because it or the whole machine was stopped or had no processor, does not count against the host.
 */
export async function untilStill(
  { beats, clock }: { /** Grows with each sign of life. */ readonly beats: () => number; readonly clock: Clock },
  call: { readonly signal: AbortSignal },
): Promise<void> {
  let seen = beats();
  let stillMs = 0;
  while (stillMs < STILL_MS) {
    await clock.sleep(LOOK_MS, call);
    const now = beats();
    stillMs = now === seen ? stillMs + LOOK_MS : 0;
    seen = now;
  }
}
