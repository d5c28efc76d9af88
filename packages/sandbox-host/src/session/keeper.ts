import type { Clock } from "@turnbox/core";
import type { Logger } from "pino";
import type { Records } from "../record/records.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { Storage } from "../storage/storage.ts";
import type { Containers } from "./container.ts";
import type { Registry } from "./registry.ts";
import { watchStorage } from "./storage-watch.ts";

interface Deps {
  readonly registry: Registry;
  readonly records: Records;
  readonly storage: Storage;
  readonly runtime: Runtime;
  readonly containers: Containers;
  readonly clock: Clock;
  readonly log: Logger;
  /** How often the storage is looked after. */
  readonly intervalMs: number;
}

/** How long the answers to idempotent requests and tool calls are kept. */
const RETENTION_MS = 24 * 3_600_000;
const FORGET_EVERY_MS = 3_600_000;

/** What a host does besides serving, until disposed. */
export function startKeeper(deps: Deps): AsyncDisposable {
  const stop = new AbortController();
  const options = { intervalMs: deps.intervalMs, signal: stop.signal };
  const work = Promise.all([watchStorage(deps, options), forget(deps, stop.signal), thaw(deps, stop.signal)]);
  return {
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await work;
    },
  };
}

async function forget({ records, clock, log }: Deps, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    await records.call("forgetBefore", clock.nowMs() - RETENTION_MS).catch((err: unknown) => {
      log.error({ err }, "old answers could not be dropped");
    });
    await clock.sleep(FORGET_EVERY_MS, { signal }).catch(() => undefined);
  }
}

/**
 * The freeze of a stop ends with the start: background processes go on before anybody calls. A container that is gone,
 * as after a reboot, is replaced when it is needed and not before.
 */
async function thaw({ registry, runtime, containers, log }: Deps, signal: AbortSignal): Promise<void> {
  for (const session of registry.all()) {
    if (signal.aborted) return;
    const { phase, container, id: sessionId } = session.row;
    if (phase.kind !== "active" || container === null) continue;
    try {
      if ((await runtime.liveness(container, { signal })) === "paused") await containers.ensure(session, { signal });
    } catch (err) {
      log.warn({ err, sessionId }, "a sandbox could not be taken up again yet");
    }
  }
}
