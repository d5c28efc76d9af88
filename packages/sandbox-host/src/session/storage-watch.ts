import { type Clock, SandboxError } from "@turnbox/core";
import type { Logger } from "pino";
import type { Runtime } from "../runtime/runtime.ts";
import type { HeadRef, Storage } from "../storage/storage.ts";
import type { Containers } from "./container.ts";
import type { Registry } from "./registry.ts";

interface Deps {
  readonly registry: Registry;
  readonly storage: Storage;
  readonly runtime: Runtime;
  readonly containers: Containers;
  readonly clock: Clock;
  readonly log: Logger;
}

const HEAL_TIMEOUT_MS = 60_000;

/**
 * Ends the containers on heads that the storage had to mount again: what they have open is dead, and files that they
 * wrote just before may be lost. Their sessions go on under a new generation.
 */
export async function replaceLostContainers(
  { registry, runtime, containers, log }: Omit<Deps, "storage" | "clock">,
  remounted: readonly HeadRef[],
  call: { readonly signal: AbortSignal },
): Promise<void> {
  for (const { token, generation } of remounted) {
    const session = registry.all().find(({ row }) => row.token === token && row.headGeneration === generation);
    if (session === undefined || session.row.container === null) continue;
    const { container } = session.row;
    log.warn({ sessionId: session.row.id, container }, "the storage died under a container");
    await runtime.stop(container, call);
    containers.suspect(session);
    await session.commit((row) =>
      row.container === container ? { ...row, container: null, generation: row.generation + 1 } : row,
    );
  }
}

/** Looks after the storage until aborted: one that has died is opened again, and what stood on it is replaced. */
export async function watchStorage(
  deps: Deps,
  options: { readonly intervalMs: number; readonly signal: AbortSignal },
): Promise<void> {
  const { storage, clock, log } = deps;
  const isOver = (): boolean => options.signal.aborted;
  while (!isOver()) {
    await clock.sleep(options.intervalMs, { signal: options.signal }).catch(() => undefined);
    if (isOver()) return;
    const call = { signal: AbortSignal.any([options.signal, AbortSignal.timeout(HEAL_TIMEOUT_MS)]) };
    try {
      if ((await storage.status(call)).state !== "unavailable") continue;
      log.warn("the storage does not serve; opening it again");
      const { remounted } = await storage.open(call);
      await replaceLostContainers(deps, remounted, call);
      log.info({ remounted: remounted.length }, "the storage serves again");
    } catch (thrown) {
      log.error({ err: SandboxError.from(thrown) }, "the storage could not be opened again");
    }
  }
}
