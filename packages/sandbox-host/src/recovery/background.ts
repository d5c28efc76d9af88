import { type Clock, mapConcurrent, runEvery } from "@turnbox/core";
import type { Logger } from "pino";
import type { Containers } from "../container/container.ts";
import type { Health } from "../health/health.ts";
import type { Expiry } from "../lifecycle/expire.ts";
import type { Husks } from "../lifecycle/husk.ts";
import type { Records } from "../record/records.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { Registry } from "../session/registry.ts";
import type { Storage } from "../storage/storage.ts";
import type { WarmPool } from "../warm/pool.ts";
import { watchContainers } from "./container-watch.ts";
import { watchStorage } from "./storage-watch.ts";

interface Deps {
  readonly registry: Registry;
  readonly records: Records;
  readonly storage: Storage;
  readonly runtime: Runtime;
  readonly containers: Containers;
  readonly husks: Husks;
  readonly expiry: Expiry;
  readonly clock: Clock;
  readonly log: Logger;
  /** How often work without urgency is done. */
  readonly intervalMs: number;
  /** How long tool calls are known after their end, and how many of each session. */
  readonly callRetention: { readonly ms: number; readonly perSession: number };
  /** The results of calls and the receipts of requests, which have bounds of their own. */
  readonly results: { tend(): Promise<void> };
  readonly receiptBounds: { tend(): Promise<void> };
  readonly dataSpace: { watch(signal: AbortSignal): Promise<void> };
  /** Outputs of calls that are kept for a while. */
  readonly outputs: { sweep(): Promise<void> };
  readonly warm: Pick<WarmPool, "release">;
  readonly health: Pick<Health, "noteStorage">;
}

const FORGET_EVERY_MS = 300_000;
const EXPIRE_EVERY_MS = 1_000;
/** A dead storage daemon stops every session, so it is checked more often than the rest. */
const STORAGE_EVERY_MS = 3_000;
/** The death of a sandbox is detected within a second. */
const CONTAINERS_EVERY_MS = 500;
const SWEEP_EVERY_MS = 60_000;
/** How many sandboxes are thawed at once. */
const LANES = 8;

/** What a host does besides serving, until disposed. */
export function startBackground(deps: Deps): AsyncDisposable {
  const stop = new AbortController();
  const options = { intervalMs: deps.intervalMs, signal: stop.signal };
  const watch = { ...options, intervalMs: Math.min(deps.intervalMs, STORAGE_EVERY_MS) };
  const work = Promise.all([
    watchStorage(deps, watch),
    watchContainers(deps, { intervalMs: CONTAINERS_EVERY_MS, signal: stop.signal }),
    forget(deps, stop.signal),
    thaw(deps, stop.signal),
    collectHusks(deps, options),
    expire(deps, stop.signal),
    sweepOutputs(deps, stop.signal),
    deps.dataSpace.watch(stop.signal),
  ]);
  return {
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await work;
      await deps.expiry.settled();
      await deps.expiry.save().catch((err: unknown) => {
        deps.log.warn({ err }, "idle times of sessions not saved");
      });
    },
  };
}

async function expire({ expiry, clock, log }: Deps, signal: AbortSignal): Promise<void> {
  await runEvery((round) => expiry.sweep(round), {
    clock,
    intervalMs: EXPIRE_EVERY_MS,
    signal,
    onFailure: (err) => {
      log.error({ err }, "timeouts of sessions not checked");
    },
  });
}

/** Removals collect husks as they free them; this finds those that a crash or a busy dataset left. */
async function collectHusks(
  { husks, clock, log }: Deps,
  { intervalMs, signal }: { readonly intervalMs: number; readonly signal: AbortSignal },
): Promise<void> {
  await runEvery((round) => husks.collect(round), {
    clock,
    intervalMs,
    signal,
    onFailure: (err) => {
      log.error({ err }, "husks not collected");
    },
  });
}

async function forget(deps: Deps, signal: AbortSignal): Promise<void> {
  const { records, clock, log, callRetention } = deps;
  const drop = async (): Promise<void> => {
    const calls = { beforeMs: clock.nowMs() - callRetention.ms, keepPerSession: callRetention.perSession };
    await records.call("forgetCalls", calls);
    await deps.results.tend();
    await deps.receiptBounds.tend();
  };
  await runEvery(drop, {
    clock,
    intervalMs: FORGET_EVERY_MS,
    signal,
    onFailure: (err) => {
      log.error({ err }, "old results not dropped");
    },
  });
}

async function sweepOutputs({ outputs, clock, log }: Deps, signal: AbortSignal): Promise<void> {
  await runEvery(() => outputs.sweep(), {
    clock,
    intervalMs: SWEEP_EVERY_MS,
    signal,
    onFailure: (err) => {
      log.error({ err }, "old outputs not dropped");
    },
  });
}

/**
 * The freeze of a stop ends with the start: background processes go on before the first call. A container that is gone,
 * as after a reboot, is replaced when it is needed and not before.
 */
async function thaw({ registry, runtime, containers, log }: Deps, signal: AbortSignal): Promise<void> {
  await mapConcurrent(registry.all(), LANES, async (session) => {
    const { phase, container, id: sessionId } = session.row;
    if (signal.aborted || phase.kind !== "active" || container === null) return;
    try {
      if ((await runtime.liveness(container, { signal })) === "paused") await containers.ensure(session, { signal });
    } catch (err) {
      log.warn({ err, sessionId }, "sandbox not thawed yet");
    }
  });
}
