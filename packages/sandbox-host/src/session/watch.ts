import type { Clock } from "@turnbox/core";
import type { Heard, SessionEventKind, SessionEvents } from "./events.ts";
import { isWanted, type Registry, type SessionFilter } from "./registry.ts";
import type { Session } from "./session.ts";

/** What a watcher gets. */
export type Watched =
  | { readonly kind: "existing" | SessionEventKind; readonly session: Session; readonly atMs: number }
  | { readonly kind: "keepalive" | "overflow"; readonly atMs: number };

/** How long a watch is silent before it says that it lives. */
export const KEEPALIVE_MS = 15_000;

/**
 * What happens to the caller's sessions: first each that exists, then each event, until the signal aborts. Nothing that
 * happens while the first part is read is missed. A reader that vanishes need not come back for it to end.
 */
export async function* watch(
  deps: {
    readonly registry: Pick<Registry, "list">;
    readonly events: Pick<SessionEvents, "listen">;
    readonly clock: Clock;
  },
  wanted: Pick<SessionFilter, "caller" | "labels">,
  { signal }: { readonly signal: AbortSignal },
): AsyncGenerator<Watched> {
  const { registry, events, clock } = deps;
  const isOver = (): boolean => signal.aborted;

  if (isOver()) return;
  using listener = events.listen();
  const hush = (): void => {
    listener[Symbol.dispose]();
  };
  signal.addEventListener("abort", hush, { once: true });
  try {
    for (const session of registry.list(wanted)) yield { kind: "existing", session, atMs: clock.nowMs() };
    while (!isOver()) {
      const heard = await nextWithin(KEEPALIVE_MS, clock, { signal, next: (over) => listener.next(over) });
      if (isOver()) return;
      if (heard === undefined) yield { kind: "keepalive", atMs: clock.nowMs() };
      else if (heard.kind === "overflow" || isWanted(heard.session.row, wanted)) yield heard;
    }
  } finally {
    signal.removeEventListener("abort", hush);
  }
}

/** The next event, or undefined if there is none in time. */
async function nextWithin(
  ms: number,
  clock: Clock,
  { signal, next }: { readonly signal: AbortSignal; readonly next: (over: AbortSignal) => Promise<Heard | undefined> },
): Promise<Heard | undefined> {
  const over = new AbortController();
  const heard = new AbortController();
  const end = (): void => {
    over.abort();
  };
  signal.addEventListener("abort", end, { once: true });
  const silence = clock.sleep(ms, { signal: AbortSignal.any([heard.signal, over.signal]) }).then(end, () => undefined);
  try {
    return await next(over.signal);
  } finally {
    heard.abort();
    signal.removeEventListener("abort", end);
    await silence;
  }
}
