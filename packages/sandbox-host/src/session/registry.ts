import { coversTenant, type Principal, SandboxError, type SessionId } from "@turnbox/core";
import type { Phase, SessionRow } from "../record/row.ts";
import { EnvironmentBudget } from "./environment-budget.ts";
import type { SessionEvents } from "./events.ts";
import type { Session } from "./session.ts";

/** Which sessions a caller asks for, of those that it may see. */
export interface SessionFilter {
  readonly caller: Principal;
  /** Only sessions with all of these labels. */
  readonly labels: SessionRow["labels"];
  /** Only sessions in one of these states; absent or empty means any. */
  readonly states?: ReadonlySet<Phase["kind"]>;
}

/** Whether a session of this row is one that the filter lets through. */
export function isWanted(row: SessionRow, { caller, labels, states }: SessionFilter): boolean {
  return (
    coversTenant(caller, row.tenant) &&
    (states === undefined || states.size === 0 || states.has(row.phase.kind)) &&
    Object.entries(labels).every(([key, value]) => row.labels[key] === value)
  );
}

/**
 * The sessions of this host by id. An id is taken before anything is made, in one step with the check for the id and
 * for capacity, so racing creates never exceed the limit and never share an id.
 */
export interface Registry {
  readonly size: number;
  /** Ids taken by creates that have not ended. */
  readonly reserved: number;
  /** How many sessions have gone since the start. */
  readonly removals: number;
  /**
   * Takes the id; dispose to give it back. Throws `SESSION_EXISTS`, or `MAX_SESSIONS_REACHED` also if the environments of
   * all sessions together leave no room for this one.
   */
  reserve(id: SessionId, env?: SessionRow["env"]): Disposable;
  add(session: Session): void;
  remove(session: Session): void;
  find(id: string): Session | undefined;
  /** The caller's session, or `SESSION_NOT_FOUND`: the same for one that is absent and for one of another tenant. */
  get(id: string, caller: Principal): Session;
  list(filter: SessionFilter): readonly Session[];
  all(): readonly Session[];
}

export function createRegistry(options: {
  /** 0 is no limit, as for the environments. */
  readonly maxSessions: number;
  readonly maxEnvironmentBytes?: number;
  readonly events: SessionEvents;
}): Registry {
  const environments = new EnvironmentBudget(options.maxEnvironmentBytes ?? 0);
  const sessions = new Map<string, Session>();
  const reserved = new Set<string>();
  let removals = 0;
  return {
    get size() {
      return sessions.size;
    },
    get reserved() {
      return reserved.size;
    },
    get removals() {
      return removals;
    },
    reserve: (id, env = {}) => {
      if (sessions.has(id) || reserved.has(id)) {
        throw new SandboxError("SESSION_EXISTS", `session ${id} exists`, { metadata: { sessionId: id } });
      }
      if (options.maxSessions > 0 && sessions.size + reserved.size >= options.maxSessions) {
        throw new SandboxError("MAX_SESSIONS_REACHED", `the host holds ${options.maxSessions} sessions, its limit`, {
          metadata: { maxSessions: String(options.maxSessions) },
        });
      }
      environments.assertRoom(env, sessions.values());
      reserved.add(id);
      return { [Symbol.dispose]: () => void reserved.delete(id) };
    },
    add: (session) => void sessions.set(session.row.id, session),
    remove: (session) => {
      if (sessions.get(session.row.id) !== session) return;
      sessions.delete(session.row.id);
      removals += 1;
      options.events.publish("destroyed", session);
    },
    find: (id) => sessions.get(id),
    get: (id, caller) => {
      const session = sessions.get(id);
      if (session === undefined || !coversTenant(caller, session.row.tenant)) {
        throw new SandboxError("SESSION_NOT_FOUND", `there is no session ${id}`, { metadata: { sessionId: id } });
      }
      return session;
    },
    list: (filter) => [...sessions.values()].filter(({ row }) => isWanted(row, filter)),
    all: () => [...sessions.values()],
  };
}
