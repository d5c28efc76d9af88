import { type Clock, SandboxError } from "@turnbox/client";
import { createDeadline } from "@turnbox/client/internal";
import { notActive } from "../environment-error.ts";

/** Lets tool calls in, until it is closed. */
export interface ToolGate {
  readonly state: "open" | "closed";
  /** Counts the call while it runs. Throws SESSION_NOT_ACTIVE where the gate is closed. */
  pass<T>(call: () => Promise<T>): Promise<T>;
  /**
   * Lets nothing in from now on and waits for what is inside. If that takes too long it is TOOLS_IN_FLIGHT, and the
   * gate is open again.
   */
  close(options: { readonly signal: AbortSignal }): Promise<void>;
  open(): void;
  /** Waits for what is inside, however it ends. */
  settled(): Promise<void>;
}

export function createToolGate({
  clock,
  drainTimeoutMs,
}: {
  readonly clock: Clock;
  readonly drainTimeoutMs: number;
}): ToolGate {
  let state: ToolGate["state"] = "open";
  const inside = new Set<Promise<unknown>>();

  const drain = async (signal: AbortSignal): Promise<void> => {
    using deadline = createDeadline({ clock, ms: drainTimeoutMs, signal });
    const late = Promise.withResolvers<never>();
    late.promise.catch(() => undefined);
    const onAbort = (): void => {
      late.reject(signal.aborted ? SandboxError.from(signal.reason) : inFlight(inside.size));
    };
    deadline.signal.addEventListener("abort", onAbort, { once: true });
    if (deadline.signal.aborted) onAbort();
    await Promise.race([Promise.allSettled(inside), late.promise]);
  };

  return {
    get state() {
      return state;
    },
    pass: async (call) => {
      if (state === "closed") throw notActive("paused", "a tool call");
      const running = call();
      inside.add(running);
      try {
        return await running;
      } finally {
        inside.delete(running);
      }
    },
    close: async ({ signal }) => {
      if (state === "closed") return;
      state = "closed";
      try {
        await drain(signal);
      } catch (thrown) {
        state = "open";
        throw thrown;
      }
    },
    open: () => {
      state = "open";
    },
    settled: async () => {
      await Promise.allSettled(inside);
    },
  };
}

const inFlight = (count: number): SandboxError =>
  new SandboxError("TOOLS_IN_FLIGHT", `${String(count)} tool calls are still running; the session is not paused`);
