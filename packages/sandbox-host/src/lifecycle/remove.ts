import { type Clock, hasReason, raceTime, SandboxError, Semaphore } from "@turnbox/core";
import type { Logger } from "pino";
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

interface Parts {
  readonly registry: Registry;
  readonly records: Records;
  readonly storage: Storage;
  readonly containers: Containers;
  readonly runtime: Runtime;
  readonly husks: Husks;
  readonly clock: Clock;
  readonly log: Logger;
  readonly crashPoint: CrashPointHook;
}

interface Call {
  readonly signal: AbortSignal;
}

const FIRST_DELAY_MS = 100;
const LONGEST_DELAY_MS = 10_000;
const ATTEMPT_TIMEOUT_MS = 60_000;
/** More at once take longer, all together: each searches the storage. */
const AT_ONCE = 4;
/** How long a stop of the service waits for attempts under way. */
const STOP_MS = 2_000;

/** Containers of operations that were cut off. */
const unownedContainers = ({ leftover }: Session): readonly string[] =>
  leftover?.kind === "rollback" ? [leftover.container] : [];

/**
 * Removes destroyed sessions in the background, so that a destroy does not wait for a container that takes seconds to end
 * or a dataset that stays busy. It tries again until everything is gone; until then the id is taken and the removal shows
 * in health.
 */
export class Removals implements AsyncDisposable {
  readonly #parts: Parts;
  readonly #removals = new Map<Session, { removal: Removal; readonly done: Promise<void> }>();
  readonly #removing = new Semaphore(AT_ONCE);
  readonly #stop = new AbortController();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  remove(session: Session): void {
    if (this.#removals.has(session)) return;
    const { id, tenant, phase } = session.row;
    const sinceMs = phase.kind === "destroying" ? phase.sinceMs : this.#parts.clock.nowMs();
    const removal: Removal = { sessionId: id, tenant, sinceMs, attempts: 0, lastError: "" };
    // The entry is in place before the work can end and remove it.
    const start = Promise.withResolvers<undefined>();
    this.#removals.set(session, { removal, done: start.promise.then(() => this.#work(session)) });
    start.resolve(undefined);
  }

  pending(): readonly Removal[] {
    return [...this.#removals.values()].map(({ removal }) => removal);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    // What does not end by then is taken up at the next start.
    const done = Promise.all([...this.#removals.values()].map((removal) => removal.done));
    await raceTime(done, { clock: this.#parts.clock, atMostMs: STOP_MS });
  }

  async #work(session: Session): Promise<void> {
    const { clock, log } = this.#parts;
    const { signal } = this.#stop;
    for (let delayMs = FIRST_DELAY_MS; !signal.aborted; delayMs = Math.min(delayMs * 2, LONGEST_DELAY_MS)) {
      try {
        await this.#attempt(session);
        this.#removals.delete(session);
        return;
      } catch (thrown) {
        if (this.#isStopping()) return;
        this.#note(session, SandboxError.from(thrown).message);
        log.warn({ err: thrown, sessionId: session.row.id }, "session not removed yet");
      }
      await clock.sleep(delayMs, { signal }).catch(() => undefined);
    }
  }

  #isStopping(): boolean {
    return this.#stop.signal.aborted;
  }

  #note(session: Session, lastError: string): void {
    const entry = this.#removals.get(session);
    if (entry !== undefined) entry.removal = { ...entry.removal, attempts: entry.removal.attempts + 1, lastError };
  }

  async #attempt(session: Session): Promise<void> {
    const { signal } = this.#stop;
    // After the operations under way, which end soon: the session's lifetime has been aborted.
    await session.serial.run(async () => {
      using _permit = await this.#removing.acquire(signal);
      await this.#removeAll(session, { signal: AbortSignal.any([signal, AbortSignal.timeout(ATTEMPT_TIMEOUT_MS)]) });
    });
    await this.#parts.husks.collect({ signal });
  }

  async #removeAll(session: Session, call: Call): Promise<void> {
    const { containers, runtime, registry, crashPoint } = this.#parts;
    await containers.end(session, call);
    for (const id of unownedContainers(session)) await runtime.stop(id, call);
    await crashPoint("destroy.container_ended");
    await this.#removeFiles(session, call);
    await crashPoint("destroy.forgotten");
    registry.remove(session);
  }

  /** If other sessions were forked from this one, its files live on without it, as a husk. */
  async #removeFiles(session: Session, call: Call): Promise<void> {
    const { storage, records, husks, clock, crashPoint } = this.#parts;
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
  }
}
