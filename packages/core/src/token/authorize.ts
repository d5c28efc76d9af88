import { SandboxError } from "../error/sandbox-error.ts";
import { type AccessVerb, ANY_TENANT, type Principal } from "./principal.ts";

/** What a method needs, as its proto says. */
export interface MethodFacts {
  /** `public` needs no token; undefined means the proto does not say, and nobody may call it. */
  readonly verb: "public" | AccessVerb | undefined;
  /** `reserved` methods have room of their own under overload. */
  readonly lane: "normal" | "reserved";
  /** What the method works on: one session, what a tenant owns, the host or fleet as a whole, or nobody's in particular. */
  readonly scope: "session" | "tenant" | "host" | "none";
}

export interface RequestSubject {
  /** The session that the request names, without any routing prefix. */
  readonly sessionId?: string;
}

/**
 * Whether the principal may call a method at all, before anything is known about the request: its verbs cover the
 * method, a token that is bound to one session is not used on what belongs to the tenant, and the host as a whole is for
 * operators: the home, and the fleet's own token.
 */
export function authorizeMethod(principal: Principal, facts: MethodFacts): void {
  if (facts.verb === undefined) throw denied("the method does not say who may call it");
  if (facts.verb === "public" || principal.kind === "home") return;
  if (!principal.verbs.includes(facts.verb)) throw denied(`the token does not allow ${facts.verb}`);
  if (facts.scope === "host" && (principal.tenant !== ANY_TENANT || principal.sandbox !== undefined)) {
    throw denied("the token does not cover the host");
  }
  if (facts.scope === "tenant" && principal.sandbox !== undefined) throw denied("the token is bound to one sandbox");
}

/**
 * Whether the principal may make this call. A token bound to one session covers requests that name it and no others;
 * whether the other session exists makes no difference to the answer. Which tenant owns a session is known only to
 * whoever holds its record: see `coversTenant`.
 */
export function authorize(principal: Principal, facts: MethodFacts, subject: RequestSubject): void {
  authorizeMethod(principal, facts);
  if (facts.verb === "public" || principal.kind === "home" || facts.scope !== "session") return;
  if (principal.sandbox !== undefined && subject.sessionId !== principal.sandbox) {
    throw denied("the token does not cover this sandbox");
  }
}

const denied = (message: string): SandboxError => new SandboxError("PERMISSION_DENIED", message);
