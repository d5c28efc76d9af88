import type { Logger } from "pino";
import type { Denial, Network } from "../network/network.ts";
import type { Registry } from "../session/registry.ts";

/** How many sessions are read in a round; the others follow in the next ones, before any refusal is forgotten. */
const SESSIONS_A_ROUND = 16;
/** Times of refusals are whole seconds: one that seems this much newer is the same. */
const SAME_MS = 2_000;

/**
 * Writes refusals to the service's log, with session, destination and rule: each destination when it is refused, and
 * again when it is refused later. Call it from time to time.
 */
export function createDenialLog(deps: {
  readonly network: Pick<Network, "denials" | "isAttached">;
  readonly registry: Pick<Registry, "all">;
  readonly log: Logger;
}): (call: { readonly signal: AbortSignal }) => Promise<void> {
  const { network, registry, log } = deps;
  /** When the refusals of a container were, by destination. */
  let told = new Map<string, ReadonlyMap<string, number>>();
  let next = 0;

  const newIn = (container: string, denials: readonly Denial[]): readonly Denial[] => {
    const before = told.get(container);
    told.set(container, new Map(denials.toReversed().map(({ destination, atMs }) => [destination, atMs])));
    return denials.filter(({ destination, atMs }) => atMs > (before?.get(destination) ?? -Infinity) + SAME_MS);
  };

  return async (call) => {
    const sessions = registry
      .all()
      .flatMap(({ row: { id, container } }) =>
        container !== null && network.isAttached(container) ? [{ id, container }] : [],
      );
    const present = new Set(sessions.map(({ container }) => container));
    told = new Map([...told].filter(([container]) => present.has(container)));
    const first = next < sessions.length ? next : 0;
    const round = sessions.slice(first, first + SESSIONS_A_ROUND);
    next = first + round.length;
    for (const { id, container } of round) {
      for (const { atMs, destination, rule } of newIn(container, await network.denials(container, call)))
        log.warn({ sessionId: id, destination, rule, at: new Date(atMs).toISOString() }, "a connection was refused");
    }
  };
}
