import { type Clock, SandboxError } from "@turnbox/core";
import type { Logger } from "pino";
import { inParallel } from "../async/in-parallel.ts";
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
  const isOver = (): boolean => options.signal.aborted;
  while (!isOver()) {
    await clock.sleep(options.intervalMs, { signal: options.signal }).catch(() => undefined);
    if (isOver()) return;
    const call = { signal: AbortSignal.any([options.signal, AbortSignal.timeout(LOOK_TIMEOUT_MS)]) };
    await look(deps, call).catch((thrown: unknown) => {
      if (!isOver()) log.error({ err: SandboxError.from(thrown) }, "dead sandbox not removed");
    });
  }
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
  await inParallel(dead, LANES, async (id) => {
    const session = sessions.get(id);
    // It may have been replaced while this looked.
    if (session === undefined || containers.resident(session) !== id) return;
    log.warn({ sessionId: session.row.id, container: id }, "sandbox died");
    await containers.lose(session, id, call);
  });
}
