import {
  type AccessVerb,
  holdsVerb,
  invalidArgument,
  MAX_TOKEN_LIFETIME_MS,
  parseEnum,
  type Principal,
  SandboxError,
  type TokenGrant,
} from "@turnbox/core";
import { Verb } from "@turnbox/protocol/turnbox/common/v1/access_pb";

/** What a token for one sandbox allows unless something is asked for. */
const DEFAULT: ReadonlyMap<number, AccessVerb> = new Map<number, AccessVerb>([
  [Verb.READ, "read"],
  [Verb.EXECUTE, "execute"],
  [Verb.FILES, "files"],
  [Verb.TURN, "turn"],
  [Verb.LIFECYCLE, "lifecycle"],
]);

/** What a token for one sandbox may allow. Operating hosts and fleets is never a part of it. */
const GRANTABLE: ReadonlyMap<number, AccessVerb> = new Map<number, AccessVerb>([...DEFAULT, [Verb.NETWORK, "network"]]);

/** Where nothing else was asked for. */
export function defaultGrant(caller: Principal): Pick<TokenGrant, "verbs" | "lifetimeMs" | "notAfterMs"> {
  return { ...grantedTime(undefined, caller), verbs: grantedVerbs([], caller) };
}

const DEFAULT_LIFETIME_MS = 3_600_000;

/**
 * What the token shall allow: what is asked for, or everything but changes of the network, and never more than the caller may
 * do itself.
 */
export function grantedVerbs(asked: readonly Verb[], caller: Principal): readonly AccessVerb[] {
  if (asked.length === 0) return [...DEFAULT.values()].filter((verb) => mayGrant(caller, verb));
  const wanted = [...new Set(asked.map((verb) => parseEnum("verbs", verb, GRANTABLE)))];
  const beyond = wanted.filter((verb) => !mayGrant(caller, verb));
  if (beyond.length > 0) {
    throw new SandboxError("PERMISSION_DENIED", `verbs: the caller's own token does not allow ${beyond.join(", ")}`, {
      metadata: { field: "verbs" },
    });
  }
  return wanted;
}

/** A caller that can make sandboxes can make one with any network policy, so it may grant changes of one that is there. */
function mayGrant(caller: Principal, verb: AccessVerb): boolean {
  const makesSandboxes = caller.sandbox === undefined && holdsVerb(caller, "lifecycle");
  return holdsVerb(caller, verb) || (verb === "network" && makesSandboxes);
}

/**
 * How long the token shall be valid: as long as is asked for, or an hour, but never longer than the caller's own token.
 * Otherwise a short-lived token that was stolen could be renewed without end.
 */
export function grantedTime(
  ttlMs: number | undefined,
  { expiresAtMs }: Principal,
): Pick<TokenGrant, "lifetimeMs" | "notAfterMs"> {
  if (ttlMs !== undefined && ttlMs > MAX_TOKEN_LIFETIME_MS) throw invalidArgument("ttl", "must be at most 24 hours");
  const lifetimeMs = ttlMs ?? DEFAULT_LIFETIME_MS;
  return expiresAtMs === undefined ? { lifetimeMs } : { lifetimeMs, notAfterMs: expiresAtMs };
}
