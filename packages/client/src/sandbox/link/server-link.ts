import { type Clock, createDeadline, SandboxError } from "@turnbox/core";
import type { TurnboxClients } from "../../client.ts";
import type { CallOptions } from "../call.ts";
import { createPatience } from "./patience.ts";

export interface ServerCallOptions extends CallOptions {
  readonly timeoutMs: number;
  /** `never`: a call that can be made once only. `keyed`, which may be made again, unless given. */
  readonly repeat?: "keyed" | "never";
}

export interface ServerCall {
  readonly signal: AbortSignal;
  /** Something arrived: the patience begins anew. */
  readonly progress: () => void;
}

/** Calls to the server that may be made again: reads, and calls with a key. */
export interface ServerLink extends Disposable {
  readonly clients: TurnboxClients;
  call<T>(make: (clients: TurnboxClients, call: ServerCall) => Promise<T>, options: ServerCallOptions): Promise<T>;
}

/** Owns the clients. */
export function createServerLink(clients: TurnboxClients, clock: Clock): ServerLink {
  const over = new AbortController();
  let server: "never seen" | "seen" = "never seen";
  return {
    clients,
    call: async (make, { signal, timeoutMs, repeat = "keyed" }) => {
      const own = signal === undefined ? over.signal : AbortSignal.any([signal, over.signal]);
      using deadline = createDeadline({ clock, ms: timeoutMs, signal: own });
      const patience = createPatience(clock);
      const progress = (): void => {
        server = "seen";
        patience.progress();
      };
      for (;;) {
        try {
          deadline.signal.throwIfAborted();
          const answer = await make(clients, { signal: deadline.signal, progress });
          server = "seen";
          return answer;
        } catch (thrown) {
          const error = SandboxError.from(thrown);
          // Fails fast if the server was never reachable: the address may lead nowhere. An answer that got lost had a server.
          if (error.reason === "SERVER_UNREACHABLE" && error.admitted === "no" && server === "never seen") throw error;
          if (repeat === "never") throw error;
          await patience.wait(error, { repeat, signal: deadline.signal });
        }
      }
    },
    [Symbol.dispose]: () => {
      over.abort(new SandboxError("CANCELLED", "the connection was closed"));
      clients.close();
    },
  };
}
