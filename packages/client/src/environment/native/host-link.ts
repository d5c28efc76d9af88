import { type Clock, SandboxError } from "@turnbox/core";
import type { HostClients } from "../../client.ts";
import { createHostCalls, type HostCalls } from "../../sandbox/host-call.ts";
import { createPatience } from "../../sandbox/link/patience.ts";

export interface HostLinkOptions {
  readonly host: HostClients;
  readonly sessionId: string;
  readonly clock: Clock;
}

/** Calls to a session on a host whose clients somebody else owns: failures are waited out, on the same connection. */
export function createNativeCalls({ host, sessionId, clock }: HostLinkOptions): HostCalls {
  const sandbox = { sandboxId: sessionId, sessionId, host, [Symbol.dispose]: () => undefined };
  return createHostCalls(
    {
      sandboxId: sessionId,
      // Never closed here: its clients are somebody else's.
      signal: new AbortController().signal,
      use: async (call, { signal, repeat = "keyed" }) => {
        const patience = createPatience(clock);
        for (;;) {
          try {
            signal.throwIfAborted();
            return await call(sandbox, patience.progress);
          } catch (thrown) {
            await patience.wait(SandboxError.from(thrown), { repeat, signal });
          }
        }
      },
      [Symbol.dispose]: () => undefined,
    },
    { sessionId, clock },
  );
}
