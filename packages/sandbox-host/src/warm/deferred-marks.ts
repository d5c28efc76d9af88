import { type Clock, hasReason } from "@turnbox/core";
import type { Logger } from "pino";
import type { SessionRow } from "../record/row.ts";
import type { Registry } from "../session/registry.ts";
import { sessionMarks } from "../session/session-marks.ts";
import type { Storage } from "../storage/storage.ts";

/**
 * Marks on the files of sessions that were made under another name. Only the rebuilding of lost records reads them, so
 * they come a moment after the session, one session at a time: nobody's first calls wait for them.
 */
export interface DeferredMarks extends AsyncDisposable {
  /** Has the files of a session, which tell of `before`, tell of it. */
  add(row: SessionRow, before: SessionRow): void;
  /** Writes nothing more: what a crash does. */
  abandon(): void;
  /** Writes what is due at once, and answers when all is written. */
  [Symbol.asyncDispose](): Promise<void>;
}

const DELAY_MS = 1_000;
const TIMEOUT_MS = 60_000;

export function createDeferredMarks(deps: {
  readonly storage: Pick<Storage, "markSession">;
  readonly registry: Pick<Registry, "find">;
  readonly clock: Clock;
  readonly log: Logger;
}): DeferredMarks {
  const { storage, registry, clock, log } = deps;
  const stop = new AbortController();
  let written: Promise<void> = Promise.resolve();
  let state: "in_use" | "abandoned" = "in_use";

  const write = async (row: SessionRow, before: SessionRow): Promise<void> => {
    // As it is now: its network policy may have been replaced, and marked, since. Many sessions live for less than a moment.
    const now = registry.find(row.id)?.row;
    if (state === "abandoned" || now?.token !== row.token) return;
    const told = sessionMarks(before);
    const news = Object.fromEntries(Object.entries(sessionMarks(now)).filter(([key, value]) => told[key] !== value));
    try {
      await storage.markSession(row.token, news, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    } catch (err) {
      if (!hasReason(err, "SESSION_NOT_FOUND"))
        log.warn({ err, sessionId: row.id }, "the files of a session do not tell of it");
    }
  };

  return {
    add: (row, before) => {
      const due = clock.sleep(DELAY_MS, { signal: stop.signal }).catch(() => undefined);
      written = Promise.all([written, due]).then(() => write(row, before));
    },
    abandon: () => {
      state = "abandoned";
      stop.abort();
    },
    [Symbol.asyncDispose]: async () => {
      stop.abort();
      await written;
    },
  };
}
