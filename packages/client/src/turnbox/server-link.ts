import { type Clock, createDeadline, SandboxError } from "@turnbox/core";
import type { TurnboxClients } from "../client.ts";
import type { CallOptions } from "../sandbox/call.ts";
import { createPatience } from "../sandbox/link/patience.ts";

export interface ServerCallOptions extends CallOptions {
  readonly timeoutMs: number;
}

/** Calls to the server that may be made again: reads, and calls with a key. */
export interface ServerLink extends Disposable {
  readonly clients: TurnboxClients;
  call<T>(
    make: (clients: TurnboxClients, options: { readonly signal: AbortSignal }) => Promise<T>,
    options: ServerCallOptions,
  ): Promise<T>;
}

/** Owns the clients. */
export function createServerLink(clients: TurnboxClients, clock: Clock): ServerLink {
  const over = new AbortController();
  let server: "never seen" | "seen" = "never seen";
  return {
    clients,
    call: async (make, { signal, timeoutMs }) => {
      const own = signal === undefined ? over.signal : AbortSignal.any([signal, over.signal]);
      using deadline = createDeadline({ clock, ms: timeoutMs, signal: own });
      const patience = createPatience(clock);
      for (;;) {
        try {
          deadline.signal.throwIfAborted();
          const answer = await make(clients, { signal: deadline.signal });
          server = "seen";
          return answer;
        } catch (thrown) {
          const error = SandboxError.from(thrown);
          // Waiting is for servers that were there; of an address that leads nowhere it is better to hear at once.
          if (error.reason === "SERVER_UNREACHABLE" && server === "never seen") throw error;
          await patience.wait(error, { repeat: "keyed", signal: deadline.signal });
        }
      }
    },
    [Symbol.dispose]: () => {
      over.abort(new SandboxError("CANCELLED", "the connection was closed"));
      clients.close();
    },
  };
}
