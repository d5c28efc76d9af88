import { type Clock, SandboxError } from "@turnbox/core";

/** How something that was measured ended. */
export interface Measured {
  /** `ok`, or the reason of the failure. */
  readonly outcome: string;
  readonly seconds: number;
}

/** Does the work and reports how it ended and how long it took, whether it succeeds or throws. */
export async function measure<T>(clock: Clock, work: () => Promise<T>, tell: (measured: Measured) => void): Promise<T> {
  const startedMs = clock.monotonicMs();
  const ended = (outcome: string): void => {
    tell({ outcome, seconds: (clock.monotonicMs() - startedMs) / 1000 });
  };
  let result: T;
  try {
    result = await work();
  } catch (thrown) {
    ended(SandboxError.from(thrown).reason);
    throw thrown;
  }
  ended("ok");
  return result;
}
