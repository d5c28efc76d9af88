import { SandboxError } from "@turnbox/core";

/** How many views a storage has open. */
export const VIEWS_AT_ONCE = 16;

/** A number of places that are taken and left, in the order of asking. */
export interface Places {
  /** Waits for a place; answers with how to leave it. Whoever waits longer than its signal lives leaves the queue. */
  take(signal: AbortSignal): Promise<() => void>;
}

export function createPlaces(count: number): Places {
  let free = count;
  const waiting = new Set<() => void>();

  const leave = (): void => {
    const [next] = waiting;
    if (next === undefined) {
      free += 1;
      return;
    }
    waiting.delete(next);
    next();
  };
  const wait = async (signal: AbortSignal): Promise<void> => {
    const turn = Promise.withResolvers<void>();
    const onAbort = (): void => {
      waiting.delete(turn.resolve);
      turn.reject(SandboxError.from(signal.reason));
    };
    waiting.add(turn.resolve);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      await turn.promise;
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  };

  return {
    take: async (signal) => {
      if (signal.aborted) throw SandboxError.from(signal.reason);
      if (free > 0) free -= 1;
      else await wait(signal);
      let state: "taken" | "left" = "taken";
      return () => {
        if (state === "left") return;
        state = "left";
        leave();
      };
    },
  };
}
