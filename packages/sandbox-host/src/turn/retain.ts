import { hasReason } from "@turnbox/core";
import type { Logger } from "pino";
import type { Records } from "../record/records.ts";
import type { SnapshotRow } from "../record/row.ts";
import type { Intents } from "../session/intent.ts";
import type { Registry } from "../session/registry.ts";
import type { Session } from "../session/session.ts";
import type { Storage } from "../storage/storage.ts";
import type { DropSnapshot } from "./drop.ts";

/**
 * Keeps the number of a session's snapshots, all kinds counted, within its limit by dropping the oldest that nothing
 * depends on. The one that the files continue from is never dropped, nor one that a fork or an old branch stands on: those
 * stay beyond the limit until they are free.
 */
export interface Retention {
  /** Brings the session within its limit soon, after the operation that is under way. */
  enforce(session: Session): void;
}

const TIMEOUT_MS = 60_000;
/** What was found in use is tried again after this many passes, whatever else happened. */
const TRY_AGAIN_AFTER = 10;

/** Snapshots of a session that something depended on when they were tried. */
interface InUse {
  readonly ids: Set<string>;
  /** How many sessions had gone by then: each may have been a fork of it. */
  readonly removals: number;
  passes: number;
}

export function createRetention(deps: {
  readonly registry: Registry;
  readonly records: Records;
  readonly storage: Storage;
  readonly intents: Intents;
  readonly dropSnapshot: DropSnapshot;
  readonly log: Logger;
  /** 0 is no limit. */
  readonly maxSnapshots: number;
}): Retention {
  const { registry, records, storage, intents, dropSnapshot, log, maxSnapshots } = deps;
  const scheduled = new WeakSet<Session>();
  const inUse = new WeakMap<Session, InUse>();

  /** Trying costs several commands, and in a session with old branches most would be in vain. */
  const knownInUse = (session: Session): Set<string> => {
    const known = inUse.get(session);
    if (known?.removals === registry.removals && known.passes < TRY_AGAIN_AFTER) {
      known.passes += 1;
      return known.ids;
    }
    const fresh: InUse = { ids: new Set(), removals: registry.removals, passes: 0 };
    inUse.set(session, fresh);
    return fresh.ids;
  };

  const retain = async (session: Session): Promise<void> => {
    const call = { signal: AbortSignal.timeout(TIMEOUT_MS) };
    await intents.settleLeftover(session);
    // A branch that has lost its last snapshot frees what it stood on, so a second look may find more.
    for (let dropped = 1; dropped > 0; ) {
      dropped = await dropSurplus(session, call);
      if (dropped > 0 && session.row.headGeneration > 1) {
        const gone = await storage.collectHeads(session.head, call);
        if (gone.length > 0) inUse.delete(session);
      }
    }
  };

  const dropSurplus = async (session: Session, call: { readonly signal: AbortSignal }): Promise<number> => {
    const { token } = session.row;
    let surplus = (await records.call("countSnapshotsOf", token)) - maxSnapshots;
    let dropped = 0;
    if (surplus <= 0) return 0;
    const snapshots = await records.call("listSnapshots", token);
    const skipped = knownInUse(session);
    for (const snapshot of snapshots) {
      if (surplus <= 0 || session.lifetime.signal.aborted) break;
      if (snapshot.id === session.row.parentSnapshot || skipped.has(snapshot.id)) continue;
      if (!(await tryDrop(session, snapshot, call))) {
        skipped.add(snapshot.id);
        continue;
      }
      surplus -= 1;
      dropped += 1;
    }
    return dropped;
  };

  const tryDrop = async (
    session: Session,
    snapshot: SnapshotRow,
    call: { readonly signal: AbortSignal },
  ): Promise<boolean> => {
    try {
      await dropSnapshot(session, snapshot, call);
      return true;
    } catch (thrown) {
      if (hasReason(thrown, "SNAPSHOT_IN_USE")) return false;
      throw thrown;
    }
  };

  return {
    enforce: (session) => {
      if (maxSnapshots === 0 || scheduled.has(session)) return;
      scheduled.add(session);
      const work = session.serial.run(async () => {
        scheduled.delete(session);
        if (!session.lifetime.signal.aborted) await retain(session);
      });
      work.catch((err: unknown) => {
        log.warn({ err, sessionId: session.row.id }, "old snapshots could not be dropped yet");
      });
    },
  };
}
