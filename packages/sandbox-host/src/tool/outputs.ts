import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "@turnbox/core";
import type { Session } from "../session/session.ts";
import { createOutputJournal, type OutputJournal } from "./output-journal.ts";
import { overBudget } from "./over-budget.ts";

/** How long the output of a call can be read after its end. */
const RETAIN_MS = 10 * 60_000;
/** What calls that have ended may hold in memory together. */
const MAX_ENDED_MEMORY_BYTES = 64 * 1024 * 1024;

interface Kept {
  readonly token: string;
  readonly journal: OutputJournal;
  diskBytes: number;
  endedMs: number | null;
}

/**
 * The outputs of tool calls, running and ended a short while ago, for whoever joins them. They are bounded on disk, for
 * each session and for all. Over the bound of a session its oldest output of ended calls goes first, then a call's own oldest
 * part. Over the bound of all the same is done to the session that holds most: no session takes the place of one that holds
 * less.
 */
export interface ToolOutputs extends AsyncDisposable {
  /** The journal of a call that begins now; dispose it when the call has ended. */
  begin(session: Session, callId: string): { readonly journal: OutputJournal } & Disposable;
  /** Tells of the journal of a call that runs or begins, until disposed. */
  follow(session: Session, callId: string, tell: (journal: OutputJournal) => void): Disposable;
  find(session: Session, callId: string): OutputJournal | undefined;
  /** Removes what has been kept long enough. */
  sweep(): Promise<void>;
  /** Removes everything: no later service reads it. Nothing is written after the answer. */
  [Symbol.asyncDispose](): Promise<void>;
}

export interface OutputLimits {
  readonly sessionBytes: number;
  readonly hostBytes: number;
}

/** `directory` must be empty; it is made when it is needed. */
export function createToolOutputs(deps: {
  readonly directory: string;
  readonly clock: Clock;
  readonly limits: OutputLimits;
}): ToolOutputs {
  const { directory, clock, limits } = deps;
  /** In the order of their beginning. */
  const kept = new Map<string, Kept>();
  const followers = new Map<string, Set<(journal: OutputJournal) => void>>();
  let files = 0;
  let made: Promise<unknown> | undefined;
  let state: "in_use" | "over" = "in_use";

  const placeOf = (session: Session, callId: string): string => `${session.row.token}/${callId}`;
  const used = (token?: string): number =>
    [...kept.values()].reduce((sum, one) => sum + (token === undefined || one.token === token ? one.diskBytes : 0), 0);
  const remove = async (place: string, one: Kept): Promise<void> => {
    if (kept.get(place) === one) kept.delete(place);
    one.diskBytes = 0;
    await one.journal.remove();
  };
  const isOver = (one: Kept, bytes: number): "session" | "host" | "no" => {
    if (used(one.token) + bytes > limits.sessionBytes) return "session";
    return used() + bytes > limits.hostBytes ? "host" : "no";
  };
  /** The oldest other one that has ended and whose going would help; of the asking session, or of one that holds more. */
  const oldestEnded = (asking: Kept, over: "session" | "host", bytes: number): readonly [string, Kept] | undefined => {
    const others = [...kept].filter(([, one]) => one !== asking && one.endedMs !== null && one.diskBytes > 0);
    const own = others.find(([, one]) => one.token === asking.token);
    if (over === "session") return own;
    let [victim, most] = [own, used(asking.token) + bytes];
    for (const other of others) {
      const held = used(other[1].token);
      if (held > most) [victim, most] = [other, held];
    }
    return victim;
  };

  const makeRoom = async (one: Kept, bytes: number): Promise<boolean> => {
    made ??= mkdir(directory, { recursive: true, mode: 0o700 });
    await made;
    while (state === "in_use") {
      const over = isOver(one, bytes);
      if (over === "no") {
        one.diskBytes += bytes;
        return true;
      }
      const victim = oldestEnded(one, over, bytes);
      if (victim !== undefined) {
        await remove(...victim);
        continue;
      }
      const freed = await one.journal.dropOldest();
      if (freed === 0) return false;
      one.diskBytes -= freed;
    }
    return false;
  };

  const sweep = async (): Promise<void> => {
    const nowMs = clock.monotonicMs();
    for (const [place, one] of [...kept])
      if (one.endedMs !== null && nowMs - one.endedMs > RETAIN_MS) await remove(place, one);
    const ended = [...kept]
      .filter(([, one]) => one.endedMs !== null)
      .map(([place, one]) => ({ place, one, token: one.token, bytes: one.journal.memoryBytes }));
    for (const { place, one } of overBudget(ended, MAX_ENDED_MEMORY_BYTES)) await remove(place, one);
  };

  return {
    begin: (session, callId) => {
      const place = placeOf(session, callId);
      const before = kept.get(place);
      // A file that stays is removed with the directory.
      if (before !== undefined) remove(place, before).catch(() => undefined);
      const serial = files++;
      const one: Kept = {
        token: session.row.token,
        journal: createOutputJournal({
          pathOf: (segment) => join(directory, `${serial}.${segment}`),
          makeRoom: (bytes) => makeRoom(one, bytes),
        }),
        diskBytes: 0,
        endedMs: null,
      };
      kept.set(place, one);
      for (const tell of followers.get(place) ?? []) tell(one.journal);
      return {
        journal: one.journal,
        [Symbol.dispose]: () => {
          one.journal.end();
          one.endedMs = clock.monotonicMs();
          const { stdout, stderr } = one.journal.totals;
          // A call without output has nothing to tell anybody.
          if (stdout + stderr === 0 && kept.get(place) === one) kept.delete(place);
        },
      };
    },
    follow: (session, callId, tell) => {
      const place = placeOf(session, callId);
      const present = kept.get(place);
      const all = followers.get(place) ?? new Set();
      followers.set(place, all.add(tell));
      if (present?.journal.state === "growing") tell(present.journal);
      return {
        [Symbol.dispose]: () => {
          all.delete(tell);
          if (all.size === 0 && followers.get(place) === all) followers.delete(place);
        },
      };
    },
    find: (session, callId) => kept.get(placeOf(session, callId))?.journal,
    sweep,
    [Symbol.asyncDispose]: async () => {
      state = "over";
      await Promise.all([...kept].map(([place, one]) => remove(place, one)));
    },
  };
}
