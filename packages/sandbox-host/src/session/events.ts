import type { Clock } from "@turnbox/core";
import type { Session } from "./session.ts";

export type SessionEventKind = "created" | "changed" | "sealed" | "destroyed";

export interface SessionEvent {
  readonly kind: SessionEventKind;
  readonly session: Session;
  readonly atMs: number;
}

/** What a reader gets: an event, or word that it was too slow and missed some. */
export type Heard = SessionEvent | { readonly kind: "overflow"; readonly atMs: number };

/** What happens to sessions, for all that listen. Publishing never waits for a reader. */
export interface SessionEvents {
  publish(kind: SessionEventKind, session: Session): void;
  /** Receives everything from now on, until disposed. */
  listen(): Listener;
}

export interface Listener extends Disposable {
  /** The next event, or undefined if the signal aborts first. */
  next(signal: AbortSignal): Promise<Heard | undefined>;
}

/** How many events wait for a slow reader before they are dropped as one overflow. */
const MAX_WAITING = 1024;

export function createSessionEvents({ clock }: { readonly clock: Clock }): SessionEvents {
  const listeners = new Set<(event: SessionEvent) => void>();
  return {
    publish: (kind, session) => {
      const event = { kind, session, atMs: clock.nowMs() };
      for (const receive of listeners) receive(event);
    },
    listen: () => {
      let waiting: Heard[] = [];
      let wake: (() => void) | undefined;
      const receive = (event: SessionEvent): void => {
        if (waiting.length >= MAX_WAITING) waiting = [{ kind: "overflow", atMs: event.atMs }];
        else waiting.push(event);
        wake?.();
      };
      listeners.add(receive);
      return {
        next: async (signal) => {
          while (waiting.length === 0 && !signal.aborted) {
            await new Promise<void>((resolve) => {
              wake = resolve;
              signal.addEventListener("abort", () => resolve(), { once: true });
            });
            wake = undefined;
          }
          return waiting.shift();
        },
        [Symbol.dispose]: () => void listeners.delete(receive),
      };
    },
  };
}
