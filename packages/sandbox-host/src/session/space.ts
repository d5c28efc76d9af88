import type { Clock } from "@turnbox/core";
import type { Storage } from "../storage/storage.ts";
import type { Activity } from "./activity.ts";
import type { Session } from "./session.ts";

/** The bytes that sessions take in the storage. */
export interface Space {
  /** As of now or, if the session was not used since, of a moment ago. What cannot be read is 0. */
  of(session: Session): Promise<number>;
  /** Says that a session was made this moment: it has nothing of its own yet, so the storage need not be asked. */
  begin(session: Session): void;
  /**
   * As of the last seconds, for a session that is being sealed: a storage that writes in groups has not counted everything
   * by then either. A call of `of` after it returns what was counted.
   */
  recent(session: Session): Promise<number>;
}

/** How long a request waits for it. */
const TIMEOUT_MS = 5_000;
/** What runs in the background of a session may write at any time. */
const MAX_AGE_MS = 5_000;
/** One that was used so short a time ago is in use: what is read of it is old at once. */
const IN_USE_MS = 1;

/** Asks the storage once for questions that follow one another, as those of a create and of a connection do. */
export function createSpace(deps: {
  readonly storage: Pick<Storage, "usedBytes">;
  readonly activity: Pick<Activity, "idleMs">;
  readonly clock: Clock;
}): Space {
  const known = new WeakMap<Session, { readonly atMs: number; readonly bytes: number }>();
  const looked = new WeakMap<Session, { readonly atMs: number; readonly bytes: number }>();

  const look = async (session: Session): Promise<number> => {
    const atMs = deps.clock.monotonicMs();
    const bytes = await deps.storage.usedBytes(session.row.token, { signal: AbortSignal.timeout(TIMEOUT_MS) });
    looked.set(session, { atMs, bytes });
    return bytes;
  };

  return {
    begin: (session) => void known.set(session, { atMs: deps.clock.monotonicMs(), bytes: 0 }),
    of: async (session) => {
      const atMs = deps.clock.monotonicMs();
      const last = known.get(session);
      const ageMs = last === undefined ? Number.POSITIVE_INFINITY : atMs - last.atMs;
      if (last !== undefined && ageMs <= MAX_AGE_MS && deps.activity.idleMs(session) >= ageMs) return last.bytes;
      try {
        const bytes = await look(session);
        if (deps.activity.idleMs(session) < IN_USE_MS) known.delete(session);
        else known.set(session, { atMs, bytes });
        return bytes;
      } catch {
        // It must not fail an operation that took place.
        return 0;
      }
    },
    recent: async (session) => {
      // Everything is about to be counted: what is read meanwhile is not kept for other callers.
      known.delete(session);
      const last = looked.get(session);
      if (last !== undefined && deps.clock.monotonicMs() - last.atMs <= MAX_AGE_MS) return last.bytes;
      return await look(session).catch(() => 0);
    },
  };
}
