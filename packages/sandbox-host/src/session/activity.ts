import type { Clock } from "@turnbox/core";
import type { Session } from "./session.ts";

/**
 * When sessions were last used. A session with a tool call in flight is in use; what only reads about a session does not
 * use it. Time while the service is down does not count, so it is measured on the monotonic clock.
 */
export interface Activity {
  touch(session: Session): void;
  /** How long the session has not been used; 0 while a tool call runs. */
  idleMs(session: Session): number;
  /** Goes on from what an earlier service counted. */
  resume(session: Session, idleMs: number): void;
}

export function createActivity({ clock }: { readonly clock: Clock }): Activity {
  const startedMs = clock.monotonicMs();
  const usedAtMs = new WeakMap<Session, number>();
  return {
    touch: (session) => void usedAtMs.set(session, clock.monotonicMs()),
    resume: (session, idleMs) => void usedAtMs.set(session, clock.monotonicMs() - idleMs),
    idleMs: (session) => (session.gate.inFlight > 0 ? 0 : clock.monotonicMs() - (usedAtMs.get(session) ?? startedMs)),
  };
}
