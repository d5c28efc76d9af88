import type { Records } from "../record/records.ts";
import type { Storage } from "../storage/storage.ts";
import type { Session } from "./session.ts";
import type { Space } from "./space.ts";

/** Facts of a session that are not in its row. */
export interface SessionFacts {
  readonly snapshotCount: number;
  readonly spaceUsedBytes: number;
}

/** The facts of a session of which nothing is left that could be asked for. */
export const NO_FACTS: SessionFacts = { snapshotCount: 0, spaceUsedBytes: 0 };

/** How long a request waits for facts about space. */
const TIMEOUT_MS = 5_000;

/** Joins sessions with what records and storage know of them. Space that cannot be read shows as 0. */
export class SessionUsage {
  readonly #records: Pick<Records, "call">;
  readonly #storage: Pick<Storage, "usedBytesOfAll">;
  readonly #space: Pick<Space, "of" | "recent">;

  constructor(deps: {
    readonly records: Pick<Records, "call">;
    readonly storage: Pick<Storage, "usedBytesOfAll">;
    readonly space: Pick<Space, "of" | "recent">;
  }) {
    this.#records = deps.records;
    this.#storage = deps.storage;
    this.#space = deps.space;
  }

  /** The facts of one session. The space it takes may have been asked for before. */
  async of(session: Session, space: Promise<number> = this.#space.of(session)): Promise<SessionFacts> {
    const [snapshotCount, spaceUsedBytes] = await Promise.all([
      this.#records.call("countSnapshotsOf", session.row.token),
      space,
    ]);
    return { snapshotCount, spaceUsedBytes };
  }

  /** The space of a session that is being sealed, as of the last seconds. */
  recentSpace(session: Session): Promise<number> {
    return this.#space.recent(session);
  }

  /** Asks for the facts of all sessions at once. */
  async ofAll(): Promise<(session: Session) => SessionFacts> {
    const [used, counts] = await Promise.all([
      this.#storage.usedBytesOfAll({ signal: AbortSignal.timeout(TIMEOUT_MS) }).catch(() => new Map<string, number>()),
      this.#records.call("countSnapshots", null),
    ]);
    return ({ row: { token } }) => ({ snapshotCount: counts[token] ?? 0, spaceUsedBytes: used.get(token) ?? 0 });
  }
}
