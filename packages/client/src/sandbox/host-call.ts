import { type Clock, createDeadline } from "@turnbox/core";
import type { CallOptions } from "./call.ts";
import type { Repeat } from "./link/patience.ts";
import type { OpenSandbox, SandboxLink } from "./link/sandbox-link.ts";

export interface HostCall {
  readonly options: CallOptions | undefined;
  /** Where the caller gives none. */
  readonly timeoutMs: number;
  readonly repeat?: Repeat;
}

export interface HostCallContext {
  readonly signal: AbortSignal;
  /** Something arrived: the patience begins anew. */
  readonly progress: () => void;
}

/** Calls to one sandbox's host. */
export interface HostCalls {
  readonly sandboxId: string;
  readonly sessionId: string;
  readonly clock: Clock;
  /** Makes a call within its time, all attempts together. */
  call<T>(
    { options, timeoutMs, repeat }: HostCall,
    make: (sandbox: OpenSandbox, context: HostCallContext) => Promise<T>,
  ): Promise<T>;
}

export function createHostCalls(
  link: SandboxLink,
  { sessionId, clock }: Pick<HostCalls, "sessionId" | "clock">,
): HostCalls {
  return {
    sandboxId: link.sandboxId,
    sessionId,
    clock,
    call: async ({ options, timeoutMs, repeat }, make) => {
      const ms = options?.timeoutMs ?? timeoutMs;
      const own = options?.signal === undefined ? link.signal : AbortSignal.any([options.signal, link.signal]);
      using deadline = createDeadline({ clock, ms, signal: own });
      const { signal } = deadline;
      return await link.use((sandbox, progress) => make(sandbox, { signal, progress }), {
        signal,
        ...(repeat && { repeat }),
      });
    },
  };
}
