import { hasReason } from "@turnbox/core";
import type { Logger } from "pino";
import type { Records } from "../record/records.ts";
import type { HuskRow } from "../record/row.ts";
import type { Storage } from "../storage/storage.ts";

/**
 * The files of destroyed sessions that others were forked from. They have no id and take no place among the sessions; each
 * goes with the last session that depends on it.
 */
export interface Husks {
  /** What an earlier service left. */
  load(): Promise<void>;
  add(husk: HuskRow): void;
  all(): readonly HuskRow[];
  /**
   * Removes all that nothing depends on any more. One that cannot go yet is left for the next time. A call during a
   * collection runs shares the next one with all who ask by then: one look through the storage serves many removals.
   */
  collect(call: { readonly signal: AbortSignal }): Promise<void>;
}

/** What one collection may take. */
const COLLECT_TIMEOUT_MS = 60_000;

export function createHusks(deps: {
  readonly records: Records;
  readonly storage: Storage;
  readonly log: Logger;
}): Husks {
  const { records, storage, log } = deps;
  const husks = new Map<string, HuskRow>();
  let running: Promise<void> = Promise.resolve();
  let waiting: Promise<void> | null = null;

  const remove = async ({ token }: HuskRow, call: { readonly signal: AbortSignal }): Promise<"gone" | "needed"> => {
    try {
      await storage.destroySession(token, call);
    } catch (thrown) {
      if (!hasReason(thrown, "SNAPSHOT_IN_USE")) throw thrown;
      // Fewer sessions may depend on it than at first.
      await storage.shrinkSession(token, call);
      return "needed";
    }
    await records.call("deleteHusk", token);
    husks.delete(token);
    return "gone";
  };

  /** Never rejects. */
  const collectAll = async (call: { readonly signal: AbortSignal }): Promise<void> => {
    // A husk may be all that another one waits for.
    for (let progress = true; progress && !call.signal.aborted; ) {
      progress = false;
      for (const husk of husks.values()) {
        try {
          if ((await remove(husk, call)) === "gone") progress = true;
        } catch (err) {
          log.warn({ err, token: husk.token }, "husk not removed yet");
        }
      }
    }
  };

  return {
    load: async () => {
      for (const husk of await records.call("listHusks", null)) husks.set(husk.token, husk);
    },
    add: (husk) => void husks.set(husk.token, husk),
    all: () => [...husks.values()],
    collect: ({ signal }) => {
      if (waiting !== null) return waiting;
      const next = running.then(() => {
        waiting = null;
        return collectAll({ signal: AbortSignal.any([signal, AbortSignal.timeout(COLLECT_TIMEOUT_MS)]) });
      });
      [running, waiting] = [next, next];
      return next;
    },
  };
}
