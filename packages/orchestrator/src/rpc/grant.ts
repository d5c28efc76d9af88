import {
  type AccessVerb,
  invalidArgument,
  MAX_TOKEN_LIFETIME_MS,
  parseEnum,
  type Principal,
  SandboxError,
  type TokenGrant,
} from "@turnbox/core";
import { Verb } from "@turnbox/protocol/turnbox/common/v1/access_pb";

/** What a token for one sandbox may allow. Operating hosts and fleets is never a part of it. */
const GRANTABLE: ReadonlyMap<number, AccessVerb> = new Map<number, AccessVerb>([
  [Verb.READ, "read"],
  [Verb.EXECUTE, "execute"],
  [Verb.FILES, "files"],
  [Verb.TURN, "turn"],
  [Verb.LIFECYCLE, "lifecycle"],
]);

/** Where nothing else was asked for. */
export function defaultGrant(caller: Principal): Pick<TokenGrant, "verbs" | "lifetimeMs" | "notAfterMs"> {
  return { ...grantedTime(undefined, caller), verbs: grantedVerbs([], caller) };
}

const DEFAULT_LIFETIME_MS = 3_600_000;

/** What the token shall allow: what is asked for, or everything, but never more than the caller may do itself. */
export function grantedVerbs(asked: readonly Verb[], { verbs: own }: Principal): readonly AccessVerb[] {
  if (asked.length === 0) return [...GRANTABLE.values()].filter((verb) => own.includes(verb));
  const wanted = [...new Set(asked.map((verb) => parseEnum("verbs", verb, GRANTABLE)))];
  const beyond = wanted.filter((verb) => !own.includes(verb));
  if (beyond.length > 0) {
    throw new SandboxError("PERMISSION_DENIED", `verbs: the caller's own token does not allow ${beyond.join(", ")}`, {
      metadata: { field: "verbs" },
    });
  }
  return wanted;
}

/**
 * How long the token shall be valid: as long as is asked for, or an hour, but never longer than the caller's own token.
 * Otherwise whoever gets hold of a short-lived token could renew it for ever.
 */
export function grantedTime(
  ttlMs: number | undefined,
  { expiresAtMs }: Principal,
): Pick<TokenGrant, "lifetimeMs" | "notAfterMs"> {
  if (ttlMs !== undefined && ttlMs > MAX_TOKEN_LIFETIME_MS) throw invalidArgument("ttl", "must be at most 24 hours");
  const lifetimeMs = ttlMs ?? DEFAULT_LIFETIME_MS;
  return expiresAtMs === undefined ? { lifetimeMs } : { lifetimeMs, notAfterMs: expiresAtMs };
}
