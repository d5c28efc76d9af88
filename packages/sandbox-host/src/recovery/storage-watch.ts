import { type Clock, runEvery, SandboxError } from "@turnbox/core";
import type { Logger } from "pino";
import type { Containers } from "../container/container.ts";
import type { Health } from "../health/health.ts";
import type { Records } from "../record/records.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { Registry } from "../session/registry.ts";
import type { Session } from "../session/session.ts";
import type { HeadRef, Storage } from "../storage/storage.ts";
import type { WarmPool } from "../warm/pool.ts";

interface Deps {
  readonly registry: Registry;
  readonly records: Records;
  readonly storage: Storage;
  readonly runtime: Runtime;
  readonly containers: Containers;
  readonly clock: Clock;
  readonly log: Logger;
}

const HEAL_TIMEOUT_MS = 60_000;

/**
 * Ends the containers on heads that the storage had to mount again: what they have open is dead, and files that they
 * wrote just before may be lost. Their sessions go on under a new generation, and tool calls that finished since their
 * last snapshots are in doubt.
 */
export async function replaceLostContainers(
  { registry, records, runtime, containers, log }: Omit<Deps, "storage" | "clock">,
  remounted: readonly HeadRef[],
  call: { readonly signal: AbortSignal },
): Promise<void> {
  for (const { token, generation } of remounted) {
    const session = registry.all().find(({ row }) => row.token === token && row.headGeneration === generation);
    if (session === undefined) continue;
    log.warn({ sessionId: session.row.id, container: session.row.container }, "storage died under a session");
    await loseFiles({ runtime, containers }, session, call);
  }
  // Nothing is in doubt for a head without a session, or one that is not live.
  await records.call("forgetLostHeads", remounted);
}

/** What the session wrote since its last snapshot may be lost, and what it had open is: it begins a new generation. */
export async function loseFiles(
  { runtime, containers }: Pick<Deps, "runtime" | "containers">,
  session: Session,
  call: { readonly signal: AbortSignal },
): Promise<void> {
  const { container } = session.row;
  if (container !== null) await runtime.stop(container, call);
  containers.suspect(session);
  await session.commit(
    (row) => ({
      ...row,
      container: row.container === container ? null : row.container,
      generation: row.generation + 1,
    }),
    { calls: "doubt" },
  );
}

/** Watches the storage until aborted: opens one that has died again, and replaces what used it. */
export async function watchStorage(
  deps: Deps & { readonly warm: Pick<WarmPool, "release">; readonly health: Pick<Health, "noteStorage"> },
  options: { readonly intervalMs: number; readonly signal: AbortSignal },
): Promise<void> {
  const { records, storage, clock, log } = deps;
  const round = async ({ signal }: { readonly signal: AbortSignal }): Promise<void> => {
    const call = { signal: AbortSignal.any([signal, AbortSignal.timeout(HEAL_TIMEOUT_MS)]) };
    const status = await storage.status(call);
    deps.health.noteStorage(status);
    if (status.state !== "unavailable") return;
    log.warn({ detail: status.detail }, "storage does not serve, opening it again");
    const onRemounted = (heads: readonly HeadRef[]): Promise<void> => records.call("noteLostHeads", heads);
    const { remounted } = await storage.open({ ...call, onRemounted });
    await deps.warm.release();
    await replaceLostContainers(deps, remounted, call);
    log.info({ remounted: remounted.length }, "storage serves again");
  };
  await runEvery(round, {
    ...options,
    clock,
    firstRound: "after_interval",
    onFailure: (failure) => {
      log.error({ err: SandboxError.from(failure) }, "storage not opened again");
    },
  });
}
