import { formatRecord, parseRecord } from "../state/record-json.ts";
import type { SessionStateStore } from "../state/session-state-store.ts";

/** Keeps sessions as long as the program runs, as text, so that nothing is shared with who saved it. */
export function createMemorySessionStateStore(): SessionStateStore {
  const kept = new Map<string, string>();
  return {
    save: async (record, { signal } = {}) => {
      signal?.throwIfAborted();
      kept.set(record.sessionId, formatRecord(record));
    },
    load: async (sessionId, { signal } = {}) => {
      signal?.throwIfAborted();
      const text = kept.get(sessionId);
      return text === undefined ? undefined : parseRecord(text, sessionId);
    },
    list: async ({ signal } = {}) => {
      signal?.throwIfAborted();
      return [...kept.keys()].sort().map((sessionId) => parseRecord(kept.get(sessionId) ?? "", sessionId));
    },
    remove: async (sessionId, { signal } = {}) => {
      signal?.throwIfAborted();
      kept.delete(sessionId);
    },
  };
}
