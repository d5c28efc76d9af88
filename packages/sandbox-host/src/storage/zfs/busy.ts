import type { Clock } from "@turnbox/core";
import type { Flavor } from "./flavor.ts";
import type { Outcome } from "./zfs-command.ts";

type Known = Exclude<Outcome, { kind: "unknown" }>;

export interface Patience {
  readonly clock: Clock;
  readonly flavor: Flavor;
  readonly patienceMs: number;
  readonly signal: AbortSignal;
}

const FIRST_PAUSE_MS = 20;
const LONGEST_PAUSE_MS = 400;

/**
 * Repeats what is refused as busy. zfs-fuse finishes an unmount after it has answered, so its `busy` mostly passes; on
 * OpenZFS `busy` means a user, and is answered at once.
 */
export async function retryWhileBusy(attempt: () => Promise<Known>, patience: Patience): Promise<Known> {
  const { clock, flavor, patienceMs, signal } = patience;
  const startedMs = clock.monotonicMs();
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(pauseMs * 2, LONGEST_PAUSE_MS)) {
    const outcome = await attempt();
    const isBusy = outcome.kind === "refused" && outcome.failure === "busy";
    if (!isBusy || flavor === "openzfs") return outcome;
    if (clock.monotonicMs() - startedMs + pauseMs > patienceMs) return outcome;
    await clock.sleep(pauseMs, { signal });
  }
}
