import type { HandlerContext } from "@connectrpc/connect";
import type { Host } from "./host.ts";

/** Longer than any such operation takes; it only keeps a hung one from living for ever. */
const OPERATION_TIMEOUT_MS = 300_000;

/**
 * What ends a mutating operation. With an idempotency key the caller can come back for the result, and others may have
 * joined the call, so it is brought to its end whether or not the caller is still there; without one nobody could find it.
 */
export function signalOf(host: Host, key: string, context: HandlerContext): AbortSignal {
  return key === "" ? context.signal : AbortSignal.any([host.stopping, AbortSignal.timeout(OPERATION_TIMEOUT_MS)]);
}
