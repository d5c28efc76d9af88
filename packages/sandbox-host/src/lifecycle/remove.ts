import { type Clock, hasReason, SandboxError } from "@turnbox/core";
import type { Logger } from "pino";
import { atMost } from "../async/at-most.ts";
import { Semaphore } from "../async/semaphore.ts";
import type { Containers } from "../container/container.ts";
import type { Records } from "../record/records.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { CrashPointHook } from "../session/crash-point.ts";
import type { Registry } from "../session/registry.ts";
import { huskMarks } from "../session/session-marks.ts";
import type { Session } from "../session/session.ts";
import type { Storage } from "../storage/storage.ts";
import type { Husks } from "./husk.ts";

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
export interface Removals extends AsyncDisposable {
  remove(session: Session): void;
  pending(): readonly Removal[];
}

const FIRST_DELAY_MS = 100;
const LONGEST_DELAY_MS = 10_000;
const ATTEMPT_TIMEOUT_MS = 60_000;
/** More at once are slower, all together: each looks through the storage. */
const AT_ONCE = 4;
/** How long a stop of the service waits for attempts under way. */
const STOP_MS = 2_000;

/** Containers of operations that were cut off. */
const unownedContainers = ({ leftover }: Session): readonly string[] =>
  leftover?.kind === "rollback" ? [leftover.container] : [];

export function createRemovals(deps: {
  readonly registry: Registry;
  readonly records: Records;
  readonly storage: Storage;
  readonly containers: Containers;
  readonly runtime: Runtime;
  readonly husks: Husks;
  readonly clock: Clock;
  readonly log: Logger;
  readonly crashPoint: CrashPointHook;
}): Removals {
  const { registry, records, storage, containers, runtime, husks, clock, log, crashPoint } = deps;
  const removals = new Map<Session, { removal: Removal; readonly done: Promise<void> }>();
  const removing = new Semaphore(AT_ONCE);
  const stop = new AbortController();
  const isStopping = (): boolean => stop.signal.aborted;

  const attempt = async (session: Session): Promise<void> => {
    // After whatever was under way: it has been told to stop.
    await session.serial.run(async () => {
      const release = await removing.acquire(stop.signal);
      try {
        await removeAll(session, {
          signal: AbortSignal.any([stop.signal, AbortSignal.timeout(ATTEMPT_TIMEOUT_MS)]),
        });
      } finally {
        release();
      }
    });
    await husks.collect({ signal: stop.signal });
  };

  const removeAll = async (session: Session, call: { readonly signal: AbortSignal }): Promise<void> => {
    await containers.end(session, call);
    for (const id of unownedContainers(session)) await runtime.stop(id, call);
    await crashPoint("destroy.container_ended");
    await removeFiles(session, call);
    await crashPoint("destroy.forgotten");
    registry.remove(session);
  };

  /** Where others were forked from the session, its files live on without it. */
  const removeFiles = async (session: Session, call: { readonly signal: AbortSignal }): Promise<void> => {
    const { token, id: sessionId, tenant } = session.row;
    try {
      await storage.destroySession(token, call);
    } catch (thrown) {
      if (!hasReason(thrown, "SNAPSHOT_IN_USE")) throw thrown;
      const husk = { token, sessionId, tenant, sinceMs: clock.nowMs() };
      await storage.markSession(token, huskMarks(husk), call);
      await storage.shrinkSession(token, call);
      await crashPoint("destroy.shrunk");
      await records.call("becomeHusk", husk);
      husks.add(husk);
      return;
    }
    await crashPoint("destroy.files_destroyed");
    await records.call("deleteSession", token);
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
      await atMost(clock, STOP_MS, done);
    },
  };
}
