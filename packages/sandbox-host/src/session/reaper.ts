import { type Clock, SandboxError } from "@turnbox/core";
import type { Logger } from "pino";
import type { Records } from "../record/records.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { Storage } from "../storage/storage.ts";
import type { Containers } from "./container.ts";
import type { Registry } from "./registry.ts";
import type { Session } from "./session.ts";

/** A session that is being removed. */
export interface Removal {
  readonly sessionId: string;
  readonly tenant: string;
  readonly sinceMs: number;
  readonly attempts: number;
  readonly lastError: string;
}

/**
 * Removes destroyed sessions in the background: a container that takes seconds to end and a dataset that stays busy hold
 * nobody up. It tries again until everything is gone; until then the id is taken and the removal shows in health.
 */
export interface Reaper extends AsyncDisposable {
  remove(session: Session): void;
  pending(): readonly Removal[];
}

const FIRST_DELAY_MS = 100;
const LONGEST_DELAY_MS = 10_000;
const ATTEMPT_TIMEOUT_MS = 60_000;
/** How long a stop of the service waits for attempts under way. */
const STOP_MS = 2_000;

/** Containers of operations that were cut off. */
const strays = ({ leftover }: Session): readonly string[] =>
  leftover?.kind === "rollback" ? [leftover.container] : [];

export function createReaper(deps: {
  readonly registry: Registry;
  readonly records: Records;
  readonly storage: Storage;
  readonly containers: Containers;
  readonly runtime: Runtime;
  readonly clock: Clock;
  readonly log: Logger;
}): Reaper {
  const { registry, records, storage, containers, runtime, clock, log } = deps;
  const removals = new Map<Session, { removal: Removal; readonly done: Promise<void> }>();
  const stop = new AbortController();
  const isStopping = (): boolean => stop.signal.aborted;

  const attempt = async (session: Session): Promise<void> => {
    // After whatever was under way: it has been told to stop.
    await session.serial.run(async () => {
      const call = { signal: AbortSignal.any([stop.signal, AbortSignal.timeout(ATTEMPT_TIMEOUT_MS)]) };
      await containers.end(session, call);
      for (const id of strays(session)) await runtime.stop(id, call);
      await storage.destroySession(session.row.token, call);
      await records.call("deleteSession", session.row.token);
      registry.remove(session);
    });
  };

  const work = async (session: Session): Promise<void> => {
    for (let delayMs = FIRST_DELAY_MS; !isStopping(); delayMs = Math.min(delayMs * 2, LONGEST_DELAY_MS)) {
      try {
        await attempt(session);
        removals.delete(session);
        return;
      } catch (thrown) {
        if (isStopping()) return;
        note(session, SandboxError.from(thrown).message);
        log.warn({ err: thrown, sessionId: session.row.id }, "removal of a session has to be tried again");
      }
      await clock.sleep(delayMs, { signal: stop.signal }).catch(() => undefined);
    }
  };

  const note = (session: Session, lastError: string): void => {
    const entry = removals.get(session);
    if (entry !== undefined) entry.removal = { ...entry.removal, attempts: entry.removal.attempts + 1, lastError };
  };

  return {
    remove: (session) => {
      if (removals.has(session)) return;
      const { id, tenant, phase } = session.row;
      const sinceMs = phase.kind === "destroying" ? phase.sinceMs : clock.nowMs();
      const removal: Removal = { sessionId: id, tenant, sinceMs, attempts: 0, lastError: "" };
      // The entry is in place before the work can end and remove it.
      const start = Promise.withResolvers<undefined>();
      removals.set(session, { removal, done: start.promise.then(() => work(session)) });
      start.resolve(undefined);
    },
    pending: () => [...removals.values()].map(({ removal }) => removal),
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      // What does not end by then is taken up at the next start.
      const done = Promise.all([...removals.values()].map((removal) => removal.done));
      await Promise.race([done, clock.sleep(STOP_MS)]);
    },
  };
}
