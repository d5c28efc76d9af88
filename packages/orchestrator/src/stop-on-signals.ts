import { constants } from "node:os";
import { type Clock, SandboxError } from "@turnbox/core";

const STOP_SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;
type StopSignal = (typeof STOP_SIGNALS)[number];

/** The kernel signals the death of a parent once for each of its threads; those are one request, not several. */
const SAME_REQUEST_MS = 1000;

export interface StopOnSignalsOptions {
  readonly source: { on(name: StopSignal, listener: () => void): unknown };
  readonly clock: Pick<Clock, "monotonicMs">;
  /** Ends the process now. */
  readonly exit: (exitCode: number) => void;
}

/** The first signal asks for a clean stop by aborting the returned signal; one that comes a second or more later means "at once". */
export function stopOnSignals({ source, clock, exit }: StopOnSignalsOptions): AbortSignal {
  const stop = new AbortController();
  let firstAtMs = 0;
  for (const name of STOP_SIGNALS) {
    source.on(name, () => {
      if (!stop.signal.aborted) {
        firstAtMs = clock.monotonicMs();
        stop.abort(new SandboxError("SHUTTING_DOWN", "the orchestrator was asked to stop"));
      } else if (clock.monotonicMs() - firstAtMs >= SAME_REQUEST_MS) {
        exit(128 + constants.signals[name]);
      }
    });
  }
  return stop.signal;
}
