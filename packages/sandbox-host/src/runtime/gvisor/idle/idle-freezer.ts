import { type Clock, setAlarm } from "@turnbox/core";

/** What is found in a sandbox that is not used. */
export type Activity =
  /** Nothing runs in it that could notice a freeze; how many processes a paused one has. */
  { readonly kind: "idle"; readonly processes: number } | { readonly kind: "busy" } | { readonly kind: "gone" };

export interface IdleFreezerOptions {
  readonly clock: Clock;
  /** How long a sandbox stays awake after its use. */
  readonly afterMs: number;
  readonly inspect: (id: string) => Promise<Activity>;
  /** Returns what a freeze needs to know. */
  readonly prepare: (id: string) => Promise<Prepared>;
  /** Called in the same tick in which the sandbox is seen to be unused. */
  readonly freeze: (prepared: Prepared) => void;
  readonly thaw: (id: string) => Promise<void>;
}

/** The group of a sandbox, and all processes of it. */
export interface Prepared {
  readonly path: string;
  readonly pids: readonly number[];
}

interface Entry {
  users: number;
  /** `unknown`: an earlier service may have left it frozen. */
  state: "awake" | "unknown" | { readonly processes: number };
  waking: Promise<void> | undefined;
  usedAtMs: number;
  turnOff: (() => void) | undefined;
}

/** How soon a sandbox in which something ran is looked at again. */
const LOOK_AGAIN_MS = 30_000;

/**
 * Freezes idle sandboxes. A sentry wakes 2,500 times a second also when nothing runs in it, which takes 2 to 4 % of a
 * processor: a hundred idle ones are a busy machine. One that has not been used for a while, and in which nothing runs, is
 * frozen, and thawed before it is used again; nothing inside can notice.
 */
export class IdleFreezer {
  readonly #options: IdleFreezerOptions;
  readonly #entries = new Map<string, Entry>();
  #isOpen = true;

  constructor(options: IdleFreezerOptions) {
    this.#options = options;
  }

  /** Keeps a sandbox awake until it is let go of, and for a while after. */
  async hold(id: string): Promise<Disposable> {
    return await this.#enter(id, "use");
  }

  /** The same for a mere look, which does not count as use. */
  async look(id: string): Promise<Disposable> {
    return await this.#enter(id, "look");
  }

  /** How many processes a frozen sandbox has; undefined for one that is awake. */
  frozenProcesses(id: string): number | undefined {
    const state = this.#entries.get(id)?.state;
    return typeof state === "object" ? state.processes : undefined;
  }

  /** Called when a sandbox is gone. */
  forget(id: string): void {
    this.#entries.get(id)?.turnOff?.();
    this.#entries.delete(id);
  }

  /** Freezes no more of them; those that are frozen stay so. */
  close(): void {
    this.#isOpen = false;
    for (const entry of this.#entries.values()) {
      entry.turnOff?.();
      entry.turnOff = undefined;
    }
  }

  async #enter(id: string, kind: "use" | "look"): Promise<Disposable> {
    const entry = this.#entryOf(id);
    entry.users += 1;
    await this.#wake(id, entry);
    return {
      [Symbol.dispose]: () => {
        this.#leave(id, entry, kind);
      },
    };
  }

  #leave(id: string, entry: Entry, kind: "use" | "look"): void {
    entry.users -= 1;
    if (kind === "use") {
      entry.usedAtMs = this.#options.clock.monotonicMs();
      entry.turnOff?.();
      entry.turnOff = undefined;
    }
    if (entry.users === 0 && this.#entries.get(id) === entry) this.#plan(id, entry, this.#options.afterMs);
  }

  #entryOf(id: string): Entry {
    const entry = this.#entries.get(id) ?? {
      users: 0,
      state: "unknown",
      waking: undefined,
      usedAtMs: this.#options.clock.monotonicMs(),
      turnOff: undefined,
    };
    this.#entries.set(id, entry);
    return entry;
  }

  async #wake(id: string, entry: Entry): Promise<void> {
    if (entry.state === "awake") return;
    // What cannot be thawed shows at its use.
    entry.waking ??= this.#options
      .thaw(id)
      .catch(() => undefined)
      .finally(() => {
        entry.state = "awake";
        entry.waking = undefined;
      });
    await entry.waking;
  }

  #plan(id: string, entry: Entry, ms: number): void {
    if (!this.#isOpen || entry.turnOff !== undefined) return;
    entry.turnOff = setAlarm(this.#options.clock, ms, () => {
      entry.turnOff = undefined;
      // What cannot be looked at now stays awake, and is looked at later.
      this.#settle(id, entry).catch(() => {
        this.#plan(id, entry, LOOK_AGAIN_MS);
      });
    });
  }

  async #settle(id: string, entry: Entry): Promise<void> {
    const { clock, afterMs } = this.#options;
    const { usedAtMs } = entry;
    const leftMs = usedAtMs + afterMs - clock.monotonicMs();
    if (entry.users > 0) return;
    if (leftMs > 0) {
      this.#plan(id, entry, leftMs);
      return;
    }
    entry.users += 1;
    const [found, prepared] = await this.#examine(id, entry);
    entry.users -= 1;
    if (this.#entries.get(id) !== entry || entry.users > 0) return;
    if (found.kind === "gone") {
      this.#entries.delete(id);
      return;
    }
    // A user that came and went meanwhile may have left something that runs.
    if (entry.usedAtMs !== usedAtMs) this.#plan(id, entry, afterMs);
    else if (found.kind === "busy" || prepared === undefined) this.#plan(id, entry, LOOK_AGAIN_MS);
    else if (this.#isOpen) this.#freeze(id, entry, { prepared, processes: found.processes });
  }

  async #examine(id: string, entry: Entry): Promise<readonly [Activity, Prepared | undefined]> {
    try {
      await this.#wake(id, entry);
      return await Promise.all([this.#options.inspect(id), this.#options.prepare(id)]);
    } catch {
      return [{ kind: "busy" }, undefined];
    }
  }

  #freeze(
    id: string,
    entry: Entry,
    { prepared, processes }: { readonly prepared: Prepared; readonly processes: number },
  ): void {
    try {
      this.#options.freeze(prepared);
      entry.state = { processes };
    } catch {
      // It goes on awake, which costs the processor's time and nothing else.
      entry.state = "unknown";
      this.#plan(id, entry, LOOK_AGAIN_MS);
    }
  }
}
