import { hasReason } from "@turnbox/core";
import type { Logger } from "pino";
import type { Records } from "../record/records.ts";
import type { SnapshotRow } from "../record/row.ts";
import type { Intents } from "../session/intent.ts";
import type { Registry } from "../session/registry.ts";
import type { Session } from "../session/session.ts";
import type { Storage } from "../storage/storage.ts";
import type { DropSnapshot } from "./drop.ts";

interface Parts {
  readonly registry: Registry;
  readonly records: Records;
  readonly storage: Storage;
  readonly intents: Intents;
  readonly dropSnapshot: DropSnapshot;
  readonly log: Logger;
  /** Most snapshots of a session. 0 is no limit. */
  readonly maxSnapshots: number;
}

interface Call {
  readonly signal: AbortSignal;
}

const TIMEOUT_MS = 60_000;
/** A snapshot that was found in use is tried again after this many passes at the latest. */
const TRY_AGAIN_AFTER = 10;

/** Snapshots of a session that something depended on when they were tried. */
interface InUse {
  readonly ids: Set<string>;
  /** How many sessions had been removed by then: each may have been a fork of it. */
  readonly removals: number;
  passes: number;
}

/**
 * Keeps the number of a session's snapshots, all kinds counted, within its limit by dropping the oldest that nothing
 * depends on. The one that the files continue from is never dropped, nor one that a fork or an old branch depends on: those
 * stay beyond the limit until they are free.
 */
export class Retention {
  readonly #parts: Parts;
  readonly #scheduled = new WeakSet<Session>();
  readonly #inUse = new WeakMap<Session, InUse>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Brings the session within its limit soon, after the operation that is under way. */
  enforce(session: Session): void {
    if (this.#parts.maxSnapshots === 0 || this.#scheduled.has(session)) return;
    this.#scheduled.add(session);
    const work = session.serial.run(async () => {
      this.#scheduled.delete(session);
      if (!session.lifetime.signal.aborted) await this.#retain(session);
    });
    work.catch((err: unknown) => {
      this.#parts.log.warn({ err, sessionId: session.row.id }, "old snapshots not dropped yet");
    });
  }

  async #retain(session: Session): Promise<void> {
    const { intents, storage } = this.#parts;
    const call = { signal: AbortSignal.timeout(TIMEOUT_MS) };
    await intents.settleLeftover(session);
    // A branch that has lost its last snapshot frees what it depended on, so a second look may find more.
    for (let dropped = 1; dropped > 0; ) {
      dropped = await this.#dropSurplus(session, call);
      if (dropped > 0 && session.row.headGeneration > 1) {
        const gone = await storage.collectHeads(session.head, call);
        if (gone.length > 0) this.#inUse.delete(session);
      }
    }
  }

  async #dropSurplus(session: Session, call: Call): Promise<number> {
    const { records, maxSnapshots } = this.#parts;
    const { token } = session.row;
    let surplus = (await records.call("countSnapshotsOf", token)) - maxSnapshots;
    let dropped = 0;
    if (surplus <= 0) return 0;
    const snapshots = await records.call("listSnapshots", token);
    const skipped = this.#knownInUse(session);
    for (const snapshot of snapshots) {
      if (surplus <= 0 || session.lifetime.signal.aborted) break;
      if (snapshot.id === session.row.parentSnapshot || skipped.has(snapshot.id)) continue;
      if (!(await this.#tryDrop(session, snapshot, call))) {
        skipped.add(snapshot.id);
        continue;
      }
      surplus -= 1;
      dropped += 1;
    }
    return dropped;
  }

  /** Trying takes several commands, and in a session with old branches most would fail. */
  #knownInUse(session: Session): Set<string> {
    const { removals } = this.#parts.registry;
    const known = this.#inUse.get(session);
    if (known?.removals === removals && known.passes < TRY_AGAIN_AFTER) {
      known.passes += 1;
      return known.ids;
    }
    const fresh: InUse = { ids: new Set(), removals, passes: 0 };
    this.#inUse.set(session, fresh);
    return fresh.ids;
  }

  async #tryDrop(session: Session, snapshot: SnapshotRow, call: Call): Promise<boolean> {
    try {
      await this.#parts.dropSnapshot(session, snapshot, call);
      return true;
    } catch (thrown) {
      if (hasReason(thrown, "SNAPSHOT_IN_USE")) return false;
      throw thrown;
    }
  }
}
