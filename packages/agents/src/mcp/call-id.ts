import { createHash } from "node:crypto";

/** What names a call in its session: an id of the protocol. */
export type RequestId = string | number;

/**
 * The id of a tool call: the same for the same request of the same session, so that a request that is sent again is one
 * call, and another for everything else. Request ids are the client's own words, of any length, hence the digest.
 */
export function toolCallIdOf(sessionId: string, requestId: RequestId): string {
  const named = JSON.stringify([sessionId, requestId]);
  return `mcp-${createHash("sha256").update(named).digest("hex").slice(0, 32)}`;
}
