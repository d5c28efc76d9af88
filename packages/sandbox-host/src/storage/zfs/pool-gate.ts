import { type Clock, SandboxError } from "@turnbox/core";

/** How long work that was aborted is waited for. For work that takes longer, every further command is refused. */
const LEAVE_PATIENCE_MS = 5000;
const RETRY_AFTER_MS = 2000;

/**
 * Lets work on an opened storage run, except while it is brought back after the death of its daemon. Mounts are
 * then removed and made again under the same paths, and what was begun before must not go on as if nothing had happened.
 */
export interface PoolGate {
  readonly state: "open" | "closed";
  /** Runs the work under a signal that also ends it when the storage closes; `STORAGE_UNAVAILABLE` while it is closed. */
  run<T>(signal: AbortSignal, work: (signal: AbortSignal) => Promise<T>): Promise<T>;
  /** Refuses new work, aborts the work that runs with `STORAGE_UNAVAILABLE`, and waits some seconds for its end. */
  close(): Promise<void>;
  open(): void;
}

export function createPoolGate(clock: Clock): PoolGate {
  const inside = new Map<AbortController, Promise<unknown>>();
  let state: "open" | "closed" = "closed";

  return {
    get state() {
      return state;
    },
    run: async (signal, work) => {
      if (state === "closed") throw beingOpened();
      const leave = new AbortController();
      const onAbort = (): void => {
        leave.abort(signal.reason);
      };
      signal.addEventListener("abort", onAbort, { once: true });
      if (signal.aborted) onAbort();
      const working = work(leave.signal);
      inside.set(leave, working);
      try {
        return await working;
      } finally {
        inside.delete(leave);
        signal.removeEventListener("abort", onAbort);
      }
    },
    close: async () => {
      state = "closed";
      const leaving = [...inside.values()];
      for (const leave of inside.keys()) leave.abort(beingOpened());
      const left = new AbortController();
      await Promise.race([
        Promise.allSettled(leaving),
        clock.sleep(LEAVE_PATIENCE_MS, { signal: left.signal }).catch(() => undefined),
      ]);
      left.abort();
    },
    open: () => {
      state = "open";
    },
  };
}

function beingOpened(): SandboxError {
  return new SandboxError("STORAGE_UNAVAILABLE", "the storage is not open, or is being opened again", {
    retryAfterMs: RETRY_AFTER_MS,
  });
}
