/** What a token may allow. The words match the verbs that the protos put on each method. */
export const ACCESS_VERBS = ["read", "execute", "files", "turn", "lifecycle", "network", "admin"] as const;

export type AccessVerb = (typeof ACCESS_VERBS)[number];

/** The tenant of whoever holds the home's token and names no other. */
export const DEFAULT_TENANT = "default";

/** The tenant of a token that speaks for the fleet itself: it covers every tenant. */
export const ANY_TENANT = "*";

/** Who calls. */
export interface Principal {
  /** `home` holds the token of this home and may do everything; `scoped` holds a signed token and may do what it says. */
  readonly kind: "home" | "scoped";
  readonly tenant: string;
  /** The one session that the token is bound to; absent means all of the tenant's. */
  readonly sandbox?: string;
  readonly verbs: readonly AccessVerb[];
  /** When the token of a `scoped` caller ends; the home's token has no end. Nothing it is given may outlast it. */
  readonly expiresAtMs?: number;
}

/** Whether what belongs to `tenant` may be shown to the principal. Where not, the answer is that of an absent thing. */
export function coversTenant(principal: Principal, tenant: string): boolean {
  return principal.kind === "home" || principal.tenant === ANY_TENANT || principal.tenant === tenant;
}

/** Whether the principal may do what the verb stands for. */
export function holdsVerb(principal: Principal, verb: AccessVerb): boolean {
  return principal.kind === "home" || principal.verbs.includes(verb);
}

/** Whether `value` is one of the verbs. */
export function isAccessVerb(value: unknown): value is AccessVerb {
  return ACCESS_VERBS.some((verb) => verb === value);
}
