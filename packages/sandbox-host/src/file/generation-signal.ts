import { SandboxError } from "@turnbox/core";
import type { SessionEvents } from "../session/events.ts";
import type { Session } from "../session/session.ts";

/**
 * A signal that also aborts with `GENERATION_CHANGED` when another incarnation of the session goes live, so that a stream of
 * the old files does not keep them mounted. Dispose it at the stream's end.
 */
export function generationSignal(
  session: Session,
  { events, signal }: { readonly events: SessionEvents; readonly signal: AbortSignal },
): Disposable & { readonly signal: AbortSignal } {
  const { generation } = session.row;
  const changed = new AbortController();
  const over = new AbortController();
  const all = AbortSignal.any([signal, session.lifetime.signal, changed.signal]);
  const stop = AbortSignal.any([all, over.signal]);
  const listen = async (): Promise<void> => {
    using listener = events.listen();
    while (!stop.aborted) {
      await listener.next(stop);
      const current = session.row.generation;
      if (current === generation) continue;
      changed.abort(
        new SandboxError("GENERATION_CHANGED", `the session is at generation ${current} now`, {
          currentGeneration: current,
        }),
      );
    }
  };
  listen().catch((thrown: unknown) => {
    // Without events a change would not be noticed, so the stream ends now.
    changed.abort(thrown);
  });
  return {
    signal: all,
    [Symbol.dispose]: () => {
      over.abort();
    },
  };
}
