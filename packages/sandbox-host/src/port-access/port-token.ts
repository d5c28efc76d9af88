import { createHmac, timingSafeEqual } from "node:crypto";
import type { Secret } from "@turnbox/core";

/** The rights of a token: one port of one generation of one session. */
export interface PortGrant {
  /** The session's own token, never used for another session. */
  readonly sessionToken: string;
  readonly port: number;
  readonly generation: number;
  /** Null means that it lasts as long as the generation. */
  readonly expiresAtMs: number | null;
}

const TOKEN = /^tbp1\.(\d{1,16}|-)\.[A-Za-z0-9_-]{43}$/;

/** Makes a token, which needs no record: with the key alone it can be verified for a grant. */
export function signPortToken(key: Secret, grant: PortGrant): string {
  const end = grant.expiresAtMs === null ? "-" : String(grant.expiresAtMs);
  const content = JSON.stringify([grant.sessionToken, grant.port, grant.generation, end]);
  return `tbp1.${end}.${createHmac("sha256", key.reveal()).update(content).digest("base64url")}`;
}

/** Whether a token opens this port of this session in this generation now. */
export function isPortToken(
  key: Secret,
  token: string,
  wanted: Omit<PortGrant, "expiresAtMs"> & { readonly nowMs: number },
): boolean {
  const [, end] = TOKEN.exec(token) ?? [];
  if (end === undefined) return false;
  const expiresAtMs = end === "-" ? null : Number(end);
  if (expiresAtMs !== null && expiresAtMs <= wanted.nowMs) return false;
  const { sessionToken, port, generation } = wanted;
  const expected = signPortToken(key, { sessionToken, port, generation, expiresAtMs });
  return expected.length === token.length && timingSafeEqual(Buffer.from(expected), Buffer.from(token));
}
