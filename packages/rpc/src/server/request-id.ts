import { randomUUID } from "node:crypto";

export const REQUEST_ID_HEADER = "x-request-id";

/** The caller's id for the request if it is fit for a log, else a new one. */
export function requestIdFrom(header: string | null): string {
  return header !== null && /^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(header) ? header : randomUUID();
}
