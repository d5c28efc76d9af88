import { createHash, timingSafeEqual } from "node:crypto";
import type { IncomingMessage } from "node:http";
import type { Secret } from "@turnbox/client";
import { parseBearer } from "@turnbox/client/internal";

export const MCP_PATH = "/mcp";

/** An answer without any work. */
export interface Refusal {
  readonly status: number;
  readonly message: string;
  readonly headers?: Readonly<Record<string, string>>;
}

export interface GuardOptions {
  /** What the address may be called by: `host:port`, in small letters. */
  readonly hosts: ReadonlySet<string>;
  readonly token: Secret;
}

/**
 * Says why a request is refused, or nothing. A page in a browser can be made to reach this port under a name of its own
 * (DNS rebinding) or to send requests blindly: its Host and Origin give it away, before the token is even looked at.
 */
export function createGuard({ hosts, token }: GuardOptions): (request: IncomingMessage) => Refusal | undefined {
  const expected = digest(token.reveal());
  return ({ headers, url = "" }) => {
    if (!hosts.has(headers.host?.toLowerCase() ?? "")) return { status: 403, message: "this Host is not served here" };
    if (!isOwnOrigin(headers.origin, hosts)) return { status: 403, message: "this Origin is not allowed here" };
    const given = parseBearer(headers.authorization);
    if (given === undefined || !timingSafeEqual(digest(given.reveal()), expected)) {
      return {
        status: 401,
        message: "send the header `Authorization: Bearer TOKEN` with the token of this server",
        headers: { "WWW-Authenticate": 'Bearer realm="turnbox mcp"' },
      };
    }
    if (url.split("?")[0] !== MCP_PATH) return { status: 404, message: `the protocol is served at ${MCP_PATH}` };
    return undefined;
  };
}

/** Programs send no Origin; pages always do. */
function isOwnOrigin(origin: string | undefined, hosts: ReadonlySet<string>): boolean {
  if (origin === undefined) return true;
  return URL.canParse(origin) && hosts.has(new URL(origin).host);
}

/** Of the same length whatever was sent, so that comparing reveals nothing. */
const digest = (text: string): Buffer => createHash("sha256").update(text).digest();
