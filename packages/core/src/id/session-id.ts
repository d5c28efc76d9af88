import { invalidArgument } from "../error/sandbox-error.ts";
import { randomToken } from "./token.ts";

/** An id that passed `parseSessionId`. */
export type SessionId = string & { readonly __brand: "SessionId" };

const RULE =
  "must begin with a letter or digit, then letters, digits, dot, underscore or hyphen, at most 128 characters, without two dots in a row";

/** Accepts what the rule for session ids allows, and names the rule otherwise. */
export function parseSessionId(raw: string, field = "session_id"): SessionId {
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(raw) || raw.includes("..")) throw invalidArgument(field, RULE);
  return raw as SessionId;
}

/** A fresh id of about 128 random bits: nobody guesses another tenant's. */
export function newSessionId(): SessionId {
  return randomToken(26) as SessionId;
}
