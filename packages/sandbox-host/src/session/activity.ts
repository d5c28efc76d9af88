import type { Clock } from "@turnbox/core";
import type { Session } from "./session.ts";

/**
 * When sessions were last used. A session with a tool call in flight is in use, and so is one in which something works on
 * its own; what only reads about a session does not use it. Time while the service is down does not count, so it is
 * measured on the monotonic clock.
 */
export interface Activity {
  touch(session: Session): void;
  /** From now on sessions of which this is true are in use. */
  countAsUse(isInUse: (session: Session) => boolean): void;
  /** How long the session has not been used; 0 while it is. If it was in use, the count begins with the last look. */
  idleMs(session: Session): number;
  /** Goes on from what an earlier service counted. */
  resume(session: Session, idleMs: number): void;
}

export function createActivity({ clock }: { readonly clock: Clock }): Activity {
  const startedMs = clock.monotonicMs();
  const usedAtMs = new WeakMap<Session, number>();
  const uses: ((session: Session) => boolean)[] = [({ gate }) => gate.inFlight > 0];
  const touch = (session: Session): void => void usedAtMs.set(session, clock.monotonicMs());
  return {
    touch,
    countAsUse: (isInUse) => void uses.push(isInUse),
    resume: (session, idleMs) => void usedAtMs.set(session, clock.monotonicMs() - idleMs),
    idleMs: (session) => {
      if (uses.some((isInUse) => isInUse(session))) touch(session);
      return clock.monotonicMs() - (usedAtMs.get(session) ?? startedMs);
    },
  };
}
