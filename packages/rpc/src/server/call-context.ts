import { type ContextValues, createContextKey } from "@connectrpc/connect";
import { type Principal, SandboxError } from "@turnbox/core";

const principalKey = createContextKey<Principal | undefined>(undefined, { description: "who calls" });
const requestIdKey = createContextKey("", { description: "the id of the call" });
const closingKey = createContextKey(new AbortController().signal, { description: "when the server begins to close" });

const peerKey = createContextKey<() => string>(() => "", { description: "from where the call comes" });

/** Anything that carries a call's values: a handler's context, or an interceptor's request by its `contextValues`. */
interface WithValues {
  readonly values: ContextValues;
}

/** Who calls. Every method but the public ones has a caller. */
export function principalOf({ values }: WithValues): Principal {
  const principal = values.get(principalKey);
  if (principal === undefined) throw new SandboxError("UNAUTHENTICATED", "nobody is known to be calling");
  return principal;
}

/** The id under which the call is found in the log and in its answer. */
export function requestIdOf({ values }: WithValues): string {
  return values.get(requestIdKey);
}

/**
 * Aborts when the server begins to close, well before it cuts what is left. A call that only waits for news (a watch)
 * ends by itself then; one that does work goes on and is waited for.
 */
export function closingSignalOf({ values }: WithValues): AbortSignal {
  return values.get(closingKey);
}

/** The address of the connection that the call came by; empty if it came by none. */
export function peerOf({ values }: WithValues): string {
  return values.get(peerKey)();
}

/** The address is found when it is asked for, which few calls do. */
export function setPeer({ values }: WithValues, find: () => string): void {
  values.set(peerKey, find);
}

export function setClosingSignal({ values }: WithValues, signal: AbortSignal): void {
  values.set(closingKey, signal);
}

export function setPrincipal({ values }: WithValues, principal: Principal): void {
  values.set(principalKey, principal);
}

export function setRequestId({ values }: WithValues, requestId: string): void {
  values.set(requestIdKey, requestId);
}
