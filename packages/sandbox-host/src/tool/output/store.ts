import { mkdir } from "node:fs/promises";
import { join } from "node:path";
import type { Clock } from "@turnbox/core";
import type { Session } from "../../session/session.ts";
import { OutputJournal } from "./journal.ts";

/** How long the output of a call can be read after its end. */
const RETAIN_MS = 10 * 60_000;
/** What calls that have ended may hold in memory together. */
const MAX_ENDED_MEMORY_BYTES = 64 * 1024 * 1024;

interface StoredOutput {
  readonly token: string;
  readonly journal: OutputJournal;
  diskBytes: number;
  endedMs: number | null;
}

type Follower = (journal: OutputJournal) => void;

export interface OutputLimits {
  /** What the outputs of one session may take on disk. */
  readonly sessionBytes: number;
  /** What all outputs may take on disk. */
  readonly hostBytes: number;
}

/**
 * The outputs of tool calls, running and ended a short while ago, for callers that join them. They are bounded on disk, for
 * each session and for all. Over the bound of a session its oldest output of ended calls goes first, then a call's own oldest
 * part. Over the bound of all the same is done to the session that holds most: no session takes the room of one that holds
 * less.
 */
export class OutputStore implements AsyncDisposable {
  readonly #directory: string;
  readonly #clock: Clock;
  readonly #limits: OutputLimits;
  /** By session and call, in the order of their beginning. */
  readonly #outputs = new Map<string, StoredOutput>();
  readonly #followers = new Map<string, Set<Follower>>();
  #files = 0;
  #made: Promise<unknown> | undefined;
  #state: "in_use" | "over" = "in_use";

  /** `directory` must be empty; it is made when it is needed. */
  constructor(deps: { readonly directory: string; readonly clock: Clock; readonly limits: OutputLimits }) {
    this.#directory = deps.directory;
    this.#clock = deps.clock;
    this.#limits = deps.limits;
  }

  /** The journal of a call that begins now; dispose it when the call has ended. */
  begin(session: Session, callId: string): { readonly journal: OutputJournal } & Disposable {
    const key = keyOf(session, callId);
    const before = this.#outputs.get(key);
    // A file that stays is removed with the directory.
    if (before !== undefined) this.#remove(key, before).catch(() => undefined);
    const output = this.#create(session.row.token);
    const { journal } = output;
    this.#outputs.set(key, output);
    for (const onJournal of this.#followers.get(key) ?? []) onJournal(journal);
    return {
      journal,
      [Symbol.dispose]: () => {
        journal.end();
        output.endedMs = this.#clock.monotonicMs();
        const { stdout, stderr } = journal.totals;
        // A call without output has nothing to read.
        if (stdout + stderr === 0 && this.#outputs.get(key) === output) this.#outputs.delete(key);
      },
    };
  }

  /** Calls `onJournal` with the journal of a call that runs or begins, until disposed. */
  follow(session: Session, callId: string, onJournal: Follower): Disposable {
    const key = keyOf(session, callId);
    const present = this.#outputs.get(key);
    const all = this.#followers.get(key) ?? new Set();
    this.#followers.set(key, all.add(onJournal));
    if (present?.journal.state === "growing") onJournal(present.journal);
    return {
      [Symbol.dispose]: () => {
        all.delete(onJournal);
        if (all.size === 0 && this.#followers.get(key) === all) this.#followers.delete(key);
      },
    };
  }

  find(session: Session, callId: string): OutputJournal | undefined {
    return this.#outputs.get(keyOf(session, callId))?.journal;
  }

  /** Removes what has been kept long enough. */
  async sweep(): Promise<void> {
    const nowMs = this.#clock.monotonicMs();
    for (const [key, output] of [...this.#outputs])
      if (output.endedMs !== null && nowMs - output.endedMs > RETAIN_MS) await this.#remove(key, output);
    const ended = [...this.#outputs]
      .filter(([, { endedMs }]) => endedMs !== null)
      .map(([key, output]) => ({ key, output, token: output.token, bytes: output.journal.memoryBytes }));
    for (const { key, output } of overBudget(ended, MAX_ENDED_MEMORY_BYTES)) await this.#remove(key, output);
  }

  /** Removes everything: no later service reads it. Nothing is written after its promise has settled. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#state = "over";
    await Promise.all([...this.#outputs].map(([key, output]) => this.#remove(key, output)));
  }

  #create(token: string): StoredOutput {
    const serial = this.#files++;
    const journal = new OutputJournal({
      pathOf: (segment) => join(this.#directory, `${serial}.${segment}`),
      makeRoom: (bytes) => this.#makeRoom(output, bytes),
    });
    const output: StoredOutput = { token, journal, diskBytes: 0, endedMs: null };
    return output;
  }

  async #remove(key: string, output: StoredOutput): Promise<void> {
    if (this.#outputs.get(key) === output) this.#outputs.delete(key);
    output.diskBytes = 0;
    await output.journal.remove();
  }

  /** Reserves room on disk for a part of an output; false if there is none. */
  async #makeRoom(output: StoredOutput, bytes: number): Promise<boolean> {
    this.#made ??= mkdir(this.#directory, { recursive: true, mode: 0o700 });
    await this.#made;
    while (this.#state === "in_use") {
      const over = this.#exceeded(output, bytes);
      if (over === "none") {
        output.diskBytes += bytes;
        return true;
      }
      const victim = this.#oldestEnded(output, over, bytes);
      if (victim !== undefined) {
        await this.#remove(...victim);
        continue;
      }
      const freed = await output.journal.dropOldest();
      if (freed === 0) return false;
      output.diskBytes -= freed;
    }
    return false;
  }

  /** The bound that the output would exceed with so much more. */
  #exceeded({ token }: StoredOutput, bytes: number): "session" | "host" | "none" {
    if (this.#usedBytes(token) + bytes > this.#limits.sessionBytes) return "session";
    return this.#usedBytes() + bytes > this.#limits.hostBytes ? "host" : "none";
  }

  /** What one session uses on disk, or all. */
  #usedBytes(token?: string): number {
    const counted = [...this.#outputs.values()].filter((output) => token === undefined || output.token === token);
    return counted.reduce((sum, { diskBytes }) => sum + diskBytes, 0);
  }

  /** The oldest other output that has ended and whose removal helps: of the same session, or of one that holds more. */
  #oldestEnded(
    asking: StoredOutput,
    over: "session" | "host",
    bytes: number,
  ): readonly [string, StoredOutput] | undefined {
    const others = [...this.#outputs].filter(
      ([, output]) => output !== asking && output.endedMs !== null && output.diskBytes > 0,
    );
    const own = others.find(([, { token }]) => token === asking.token);
    if (over === "session") return own;
    let [victim, most] = [own, this.#usedBytes(asking.token) + bytes];
    for (const other of others) {
      const held = this.#usedBytes(other[1].token);
      if (held > most) [victim, most] = [other, held];
    }
    return victim;
  }
}

function keyOf(session: Session, callId: string): string {
  return `${session.row.token}/${callId}`;
}

/** Something that is kept for a session, oldest first. */
export interface Held {
  readonly token: string;
  readonly bytes: number;
}

/** What has to go so that the rest is within a budget: again and again the oldest of the session that holds most. */
export function overBudget<Item extends Held>(items: readonly Item[], maxBytes: number): readonly Item[] {
  const kept = new Map<string, { readonly items: Item[]; bytes: number }>();
  let all = 0;
  for (const item of items) {
    const own = kept.get(item.token) ?? { items: [], bytes: 0 };
    kept.set(item.token, own);
    own.items.push(item);
    own.bytes += item.bytes;
    all += item.bytes;
  }
  const over: Item[] = [];
  while (all > maxBytes) {
    const largest = [...kept.values()].reduce((a, b) => (b.bytes > a.bytes ? b : a));
    const oldest = largest.items.shift();
    if (oldest === undefined) break;
    largest.bytes -= oldest.bytes;
    all -= oldest.bytes;
    over.push(oldest);
  }
  return over;
}
