import type { IncomingHttpHeaders } from "node:http2";

/** The fields of a message over HTTP/2 as Connect has them, without those of the protocol itself. */
export function toHeaders(fields: IncomingHttpHeaders): Headers {
  const headers = new Headers();
  for (const [name, value] of Object.entries(fields)) {
    if (value === undefined || name.startsWith(":")) continue;
    for (const one of typeof value === "string" ? [value] : value) headers.append(name, one);
  }
  return headers;
}
