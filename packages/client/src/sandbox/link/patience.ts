import { Code } from "@connectrpc/connect";
import { type Clock, SandboxError } from "@turnbox/core";

/** How long failures of a call are waited out before its caller is told, by what kind of failure it is. */
export const PATIENCE_MS = {
  /** A server, a host or a store that does not answer. */
  away: 30_000,
  /** Whoever answers says when to ask again. */
  busy: 30_000,
  /** A failure that should not have been. */
  unexpected: 2000,
} as const;

const FIRST_WAIT_MS = 100;
const LONGEST_WAIT_MS = 800;

/**
 * What makes a second attempt of a call harmless. `keyed`: reads, and calls that carry a key or an offset. `unkeyed`: nothing
 * does, so it is made again only if the first one certainly had no effect.
 */
export type Repeat = "keyed" | "unkeyed";

/** Decides, by the error table alone, whether a call is made again, and when. One for each call. */
export interface Patience {
  /** Something arrived: the waiting begins anew with the next failure. */
  progress(): void;
  /** Waits until the next attempt, or throws the failure. */
  wait(error: SandboxError, call: { readonly repeat: Repeat; readonly signal: AbortSignal }): Promise<void>;
}

export function createPatience(clock: Clock): Patience {
  let sinceMs: number | undefined;
  let waitMs = FIRST_WAIT_MS;
  return {
    progress: () => {
      sinceMs = undefined;
      waitMs = FIRST_WAIT_MS;
    },
    wait: async (error, { repeat, signal }) => {
      const patienceMs = patienceOf(error, repeat);
      const nowMs = clock.monotonicMs();
      sinceMs ??= nowMs;
      const delayMs = error.retryAfterMs ?? waitMs;
      if (signal.aborted || nowMs + delayMs - sinceMs > patienceMs) throw error;
      waitMs = Math.min(waitMs * 2, LONGEST_WAIT_MS);
      try {
        await clock.sleep(delayMs, { signal });
      } catch {
        // Only the signal ends a sleep early.
        throw ownEnd(signal, error);
      }
    },
  };
}

/** An abort is the caller's word; a deadline that passed while waiting is told by what was waited for. */
export function ownEnd(signal: AbortSignal, error: SandboxError): SandboxError {
  const own = SandboxError.from(signal.reason);
  return own.reason === "DEADLINE_EXCEEDED" ? error : own;
}

/** How long this failure is waited out; less than nothing if it is not. */
function patienceOf(error: SandboxError, repeat: Repeat): number {
  const { retry, code } = error.row;
  if (retry === "never" || (repeat === "unkeyed" && error.admitted !== "no")) return -1;
  if (code === Code.Unavailable) return PATIENCE_MS.away;
  if (error.retryAfterMs !== undefined || error.reason === "ROLLBACK_IN_PROGRESS") return PATIENCE_MS.busy;
  // A paused sandbox, tools in flight, a full pool: they pass when a caller does something, which has to get the error first.
  return error.reason === "INTERNAL" ? PATIENCE_MS.unexpected : -1;
}
