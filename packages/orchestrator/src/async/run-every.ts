import { type Clock, type Log, SandboxError } from "@turnbox/core";

export interface RunEveryOptions {
  /** Looks at things as they are; it needs nothing from the time before. */
  readonly work: (call: { readonly signal: AbortSignal }) => Promise<unknown>;
  readonly intervalMs: number;
  readonly clock: Clock;
  readonly log: Log;
  /** What failed, for the log. */
  readonly what: string;
  readonly signal: AbortSignal;
}

/** Does the work at once and again after each interval, until the signal. A failed round is logged and followed by the next. */
export async function runEvery({ work, intervalMs, clock, log, what, signal }: RunEveryOptions): Promise<void> {
  const isOver = (): boolean => signal.aborted;
  while (!isOver()) {
    try {
      await work({ signal });
    } catch (error) {
      if (!isOver()) log.error({ err: SandboxError.from(error), what }, "a round failed");
    }
    await clock.sleep(intervalMs, { signal }).catch(() => undefined);
  }
}
