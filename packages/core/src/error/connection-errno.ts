/** Nothing listened, or no way or name was found. */
const NEVER_SENT: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "EHOSTUNREACH",
  "EHOSTDOWN",
  "ENETUNREACH",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EADDRNOTAVAIL",
  "ERR_SOCKET_CONNECTION_TIMEOUT",
]);

/** Whether a connection that failed with this code was never made, so that nothing was sent over it. */
export const isNeverSent = (errno: string): boolean => NEVER_SENT.has(errno);

/**
 * The system's or Node's own code (ECONNREFUSED, ERR_HTTP2_STREAM_CANCEL, ...) at the end of the chain of causes. Errors
 * are told by their shape, not by their class.
 */
export function errnoOf(thrown: unknown): string | undefined {
  const seen = new Set<unknown>();
  let found: string | undefined;
  for (let next = thrown; typeof next === "object" && next !== null && !seen.has(next); ) {
    seen.add(next);
    const { code, cause } = next as { readonly code?: unknown; readonly cause?: unknown };
    if (typeof code === "string") found = code;
    next = cause;
  }
  return found;
}
