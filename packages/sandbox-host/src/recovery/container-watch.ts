import { type Clock, mapConcurrent, runEvery, SandboxError } from "@turnbox/core";
import type { Logger } from "pino";
import type { Containers } from "../container/container.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { Registry } from "../session/registry.ts";

interface Deps {
  readonly registry: Registry;
  readonly runtime: Runtime;
  readonly containers: Containers;
  readonly clock: Clock;
  readonly log: Logger;
}

/** How many dead sandboxes are removed at once. */
const LANES = 8;
/** Longest time of one look, removals included. */
const LOOK_TIMEOUT_MS = 30_000;

/**
 * Detects sandboxes that die, until aborted: their sessions begin a new generation, which watchers get, before the next
 * call. Calls that ran in them have failed by themselves.
 */
export async function watchContainers(
  deps: Deps,
  options: { readonly intervalMs: number; readonly signal: AbortSignal },
): Promise<void> {
  const { clock, log } = deps;
  const round = async ({ signal }: { readonly signal: AbortSignal }): Promise<void> => {
    await look(deps, { signal: AbortSignal.any([signal, AbortSignal.timeout(LOOK_TIMEOUT_MS)]) });
  };
  await runEvery(round, {
    ...options,
    clock,
    firstRound: "after_interval",
    onFailure: (failure) => {
      log.error({ err: SandboxError.from(failure) }, "dead sandbox not removed");
    },
  });
}

async function look(
  { registry, runtime, containers, log }: Deps,
  call: { readonly signal: AbortSignal },
): Promise<void> {
  const sessions = new Map(
    registry.all().flatMap((session) => {
      const id = containers.resident(session);
      return id === undefined ? [] : [[id, session] as const];
    }),
  );
  if (sessions.size === 0) return;
  const dead = await runtime.findDead([...sessions.keys()], call);
  const lose = async (id: string): Promise<void> => {
    const session = sessions.get(id);
    // It may have been replaced while this looked.
    if (session === undefined || containers.resident(session) !== id) return;
    log.warn({ sessionId: session.row.id, container: id }, "sandbox died");
    await containers.lose(session, id, call);
  };
  // A failure with one does not keep the others.
  const ends = await mapConcurrent(dead, LANES, async (id) => await Promise.allSettled([lose(id)]));
  for (const [end] of ends) if (end.status === "rejected") throw end.reason;
}
