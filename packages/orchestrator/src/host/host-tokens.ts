import { ACCESS_VERBS, ANY_TENANT, type Clock, type SignedToken, type TokenSigner } from "@turnbox/core";
import type { CallHostOptions, HostCaller } from "./host-call.ts";

const LIFETIME_MS = 10 * 60_000;
/** A token with less than this left is replaced, so that none ends under a call. */
const RENEW_MS = 5 * 60_000;
const MAX_KEPT = 1000;

/** The orchestrator changes no policy of a sandbox that is there, and hosts of earlier versions do not know the verb. */
const VERBS = ACCESS_VERBS.filter((verb) => verb !== "network");

/** Short-lived tokens for calls to hosts: a tenant's calls carry the tenant, the fleet's own carry all of them. */
export function createHostTokens({
  signer,
  clock,
}: {
  readonly signer: TokenSigner;
  readonly clock: Clock;
}): CallHostOptions["tokenFor"] {
  const kept = new Map<string, SignedToken>();
  return (caller: HostCaller) => {
    const tenant = caller.kind === "fleet" ? ANY_TENANT : caller.tenant;
    const key = `${caller.kind} ${tenant}`;
    const present = kept.get(key);
    if (present !== undefined && present.expiresAtMs - clock.nowMs() > RENEW_MS) return present.token;
    const verbs = caller.kind === "fleet" ? VERBS : VERBS.filter((verb) => verb !== "admin");
    const signed = signer.sign({ tenant, verbs, lifetimeMs: LIFETIME_MS });
    if (kept.size >= MAX_KEPT) kept.clear();
    kept.set(key, signed);
    return signed.token;
  };
}
