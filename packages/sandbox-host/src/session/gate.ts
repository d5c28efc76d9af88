import { SandboxError } from "@turnbox/core";

/** Why new tool calls are refused while a gate is closed. */
export type GateReason = "ROLLBACK_IN_PROGRESS" | "SESSION_PAUSED" | "SESSION_DESTROYING";

/**
 * Counts the tool calls of a session that are in flight and lets an operation that needs none keep new ones out. Closing
 * and the count are one step on the main thread: no call slips in between.
 */
export interface Gate {
  readonly inFlight: number;
  readonly isClosed: boolean;
  /** Takes a place for one call; dispose it when the call has ended. Throws the gate's reason while it is closed. */
  enter(): Disposable;
  /** Keeps new calls out until disposed. */
  close(reason: GateReason): Disposable;
  /** Resolves when no call is in flight; rejects with `TOOLS_IN_FLIGHT` when the time is over or the signal aborts. */
  drained(options: { readonly timeoutMs: number; readonly signal: AbortSignal }): Promise<void>;
}

export function createGate(): Gate {
  const closed: GateReason[] = [];
  const waiting = new Set<() => void>();
  let inFlight = 0;
  return {
    get inFlight() {
      return inFlight;
    },
    get isClosed() {
      return closed.length > 0;
    },
    enter: () => {
      const reason = closed.at(-1);
      if (reason !== undefined) throw new SandboxError(reason, "the session takes no new tool calls at this moment");
      inFlight += 1;
      return once(() => {
        inFlight -= 1;
        if (inFlight === 0) for (const wake of waiting) wake();
      });
    },
    close: (reason) => {
      closed.push(reason);
      return once(() => {
        closed.splice(closed.indexOf(reason), 1);
      });
    },
    drained: async ({ timeoutMs, signal }) => {
      if (inFlight === 0) return;
      const over = AbortSignal.any([signal, AbortSignal.timeout(timeoutMs)]);
      await new Promise<void>((resolve, reject) => {
        const wake = (): void => {
          waiting.delete(wake);
          over.removeEventListener("abort", giveUp);
          resolve();
        };
        const giveUp = (): void => {
          waiting.delete(wake);
          reject(
            new SandboxError("TOOLS_IN_FLIGHT", `${inFlight} tool calls are still running`, {
              metadata: { inFlight: String(inFlight) },
            }),
          );
        };
        waiting.add(wake);
        over.addEventListener("abort", giveUp, { once: true });
        if (over.aborted) giveUp();
      });
    },
  };
}

function once(release: () => void): Disposable {
  let released = false;
  return {
    [Symbol.dispose]: () => {
      if (released) return;
      released = true;
      release();
    },
  };
}
