import { type Clock, hasReason } from "@turnbox/core";
import type { Logger } from "pino";
import type { SessionRow } from "../record/row.ts";
import type { Registry } from "../session/registry.ts";
import { sessionMarks } from "../session/session-marks.ts";
import type { Storage } from "../storage/storage.ts";

interface Parts {
  readonly storage: Pick<Storage, "markSession">;
  readonly registry: Pick<Registry, "find">;
  readonly clock: Clock;
  readonly log: Logger;
}

const DELAY_MS = 1_000;
const TIMEOUT_MS = 60_000;

/**
 * Marks on the files of sessions that were made under another name. Only the rebuilding of lost records reads them, so
 * they are written a moment after the session, one session at a time, and the first calls of a session do not wait for them.
 */
export class DeferredMarks implements AsyncDisposable {
  readonly #parts: Parts;
  readonly #stop = new AbortController();
  #written: Promise<void> = Promise.resolve();
  #isAbandoned = false;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Replaces the marks of `before` by those of the session. */
  add(row: SessionRow, before: SessionRow): void {
    const due = this.#parts.clock.sleep(DELAY_MS, { signal: this.#stop.signal }).catch(() => undefined);
    this.#written = Promise.all([this.#written, due]).then(() => this.#write(row, before));
  }

  /** Writes nothing more: what a crash does. */
  abandon(): void {
    this.#isAbandoned = true;
    this.#stop.abort();
  }

  /** Writes what is due at once, and returns when all is written. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#written;
  }

  async #write(row: SessionRow, before: SessionRow): Promise<void> {
    const { registry, storage, log } = this.#parts;
    // As it is now: its network policy may have been replaced, and marked, since. Many sessions live for less than a moment.
    const now = registry.find(row.id)?.row;
    if (this.#isAbandoned || now?.token !== row.token) return;
    const old = sessionMarks(before);
    const changed = Object.fromEntries(Object.entries(sessionMarks(now)).filter(([key, value]) => old[key] !== value));
    try {
      await storage.markSession(row.token, changed, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    } catch (err) {
      if (!hasReason(err, "SESSION_NOT_FOUND")) log.warn({ err, sessionId: row.id }, "marks of a session not written");
    }
  }
}
