import { parseSessionId } from "../id/session-id.ts";
import { type AccessVerb, ANY_TENANT, isAccessVerb } from "./principal.ts";

/** What a signed token says. Times are whole seconds since the epoch, as in every JWT. */
export interface TokenClaims {
  /** The fleet that signed. */
  readonly iss: string;
  readonly tenant: string;
  readonly sandbox?: string;
  readonly verbs: readonly AccessVerb[];
  readonly iat: number;
  readonly nbf?: number;
  readonly exp: number;
  /** Names this one token, for the audit trail. */
  readonly jti: string;
}

/** Whether `value` can name a tenant: the rule of session ids, or the mark of all tenants. */
export function isTenant(value: unknown): value is string {
  return value === ANY_TENANT || isId(value);
}

/** What each claim has to be. */
const RULES: Readonly<Record<keyof TokenClaims, (value: unknown) => boolean>> = {
  iss: isText,
  tenant: isTenant,
  sandbox: (value) => value === undefined || isId(value),
  verbs: (value) => Array.isArray(value) && value.every(isAccessVerb),
  iat: isSeconds,
  nbf: (value) => value === undefined || isSeconds(value),
  exp: isSeconds,
  jti: isText,
};

/** The claims, or undefined where one is missing, of a wrong type or out of its range. Others than these are left out. */
export function parseClaims(json: unknown): TokenClaims | undefined {
  if (typeof json !== "object" || json === null) return undefined;
  const offered = json as Readonly<Record<string, unknown>>;
  if (!Object.entries(RULES).every(([name, holds]) => holds(offered[name]))) return undefined;
  const kept = Object.keys(RULES).filter((name) => offered[name] !== undefined);
  return Object.fromEntries(kept.map((name) => [name, offered[name]])) as unknown as TokenClaims;
}

function isText(value: unknown): boolean {
  return typeof value === "string" && value !== "";
}

function isSeconds(value: unknown): boolean {
  return Number.isSafeInteger(value) && Number(value) >= 0;
}

function isId(value: unknown): value is string {
  if (typeof value !== "string") return false;
  try {
    parseSessionId(value);
    return true;
  } catch {
    return false;
  }
}
