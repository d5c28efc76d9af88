import type { CallOptions } from "@connectrpc/connect";
import { hasReason, type SandboxError, type Secret } from "@turnbox/core";
import { fromHostError } from "./host-error.ts";
import type { HostTransport } from "./host-transport.ts";

/** On whose behalf the host is called: a tenant, or the fleet itself (reports, templates, commands). */
export type HostCaller = { readonly kind: "tenant"; readonly tenant: string } | { readonly kind: "fleet" };

export interface HostCall {
  readonly signal: AbortSignal;
  readonly caller: HostCaller;
  /** Of a unary call; streams have no deadline but their caller's. */
  readonly timeoutMs?: number;
  /** Whether the call changes anything. */
  readonly effect: "none" | "some";
  /** Of a command of the fleet's leader. */
  readonly epoch?: number;
}

export type CallHost = <T>(call: HostCall, work: (options: CallOptions) => Promise<T>) => Promise<T>;

export interface CallHostOptions {
  readonly url: string;
  /** The bearer token for a call. */
  readonly tokenFor: (caller: HostCaller) => Secret;
  readonly link: HostTransport;
  /** Called if the next call, or the one that failed, is not on the connection of those before. */
  readonly onNewConnection: () => void;
}

const EPOCH_HEADER = "turnbox-fleet-epoch";

/**
 * Calls a host and makes `SandboxError`s of what goes wrong. A call that was lost with a connection that had worked
 * before is sent once more over a new one, if the error table lets it: it changes nothing, or nothing of it arrived.
 * Every other repetition is for the holder of the idempotency key.
 */
export function createCallHost({ url, tokenFor, link, onNewConnection }: CallHostOptions): CallHost {
  const once = async <T>(
    { signal, caller, timeoutMs, epoch }: HostCall,
    work: (options: CallOptions) => Promise<T>,
  ): Promise<T> => {
    signal.throwIfAborted();
    const headers = {
      authorization: `Bearer ${tokenFor(caller).reveal()}`,
      ...(epoch === undefined ? {} : { [EPOCH_HEADER]: String(epoch) }),
    };
    try {
      return await work({ signal, headers, ...(timeoutMs === undefined ? {} : { timeoutMs }) });
    } catch (thrown) {
      const error = fromHostError(thrown, { signal, url });
      if (hasReason(error, "HOST_UNREACHABLE")) onNewConnection();
      throw error;
    }
  };

  return async (call, work) => {
    const connection = link.connection();
    if (connection === "new") onNewConnection();
    try {
      return await once(call, work);
    } catch (error) {
      if (connection === "new" || call.timeoutMs === undefined || !mayRepeat(error, call)) throw error;
      return await once(call, work);
    }
  };
}

function mayRepeat(error: unknown, { effect }: HostCall): error is SandboxError {
  return hasReason(error, "HOST_UNREACHABLE") && (effect === "none" || error.admitted === "no");
}
