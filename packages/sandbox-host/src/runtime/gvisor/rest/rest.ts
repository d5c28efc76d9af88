import { type Clock, setAlarm } from "@turnbox/core";

/** What is found in a sandbox that nobody uses. */
export type Stillness =
  /** Nothing runs in it that could notice; how many processes a paused one has. */
  { readonly kind: "still"; readonly processes: number } | { readonly kind: "busy" } | { readonly kind: "gone" };

/**
 * Lets sandboxes rest. A sentry wakes 2,500 times a second also where nothing runs in it, which takes 2 to 4 % of a
 * processor: a hundred idle ones are a busy machine. One that nobody has used for a while, and in which nothing runs, is
 * frozen, and thawed before it is used again; nothing inside can tell.
 */
export interface Rest {
  /** Keeps a sandbox awake until it is let go of, and for a while after. */
  hold(id: string): Promise<Disposable>;
  /** The same for a mere look, which does not count as use. */
  look(id: string): Promise<Disposable>;
  /** How many processes one that rests has; undefined where it does not. */
  restingProcesses(id: string): number | undefined;
  /** Called when it is gone. */
  forget(id: string): void;
  /** Lets no more of them rest; those that do stay so. */
  close(): void;
}

export interface RestOptions {
  readonly clock: Clock;
  /** How long one stays awake after its use. */
  readonly afterMs: number;
  readonly inspect: (id: string) => Promise<Stillness>;
  /** What a freeze needs to know. */
  readonly prepare: (id: string) => Promise<Prepared>;
  /** Called in the same tick in which nobody is seen to use it. */
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
  /** Of one that an earlier service has left nobody knows. */
  state: "awake" | "unknown" | { readonly processes: number };
  waking: Promise<void> | undefined;
  usedAtMs: number;
  turnOff: (() => void) | undefined;
}

/** How soon one in which something ran is looked at again. */
const LOOK_AGAIN_MS = 30_000;

export function createRest({ clock, afterMs, inspect, prepare, freeze, thaw }: RestOptions): Rest {
  const entries = new Map<string, Entry>();
  let isOpen = true;

  const entryOf = (id: string): Entry => {
    const entry = entries.get(id) ?? {
      users: 0,
      state: "unknown",
      waking: undefined,
      usedAtMs: clock.monotonicMs(),
      turnOff: undefined,
    };
    entries.set(id, entry);
    return entry;
  };
  const plan = (id: string, entry: Entry, ms: number): void => {
    if (!isOpen || entry.turnOff !== undefined) return;
    entry.turnOff = setAlarm(clock, ms, () => {
      entry.turnOff = undefined;
      // What cannot be looked at now stays awake, and is looked at later.
      settle(id, entry).catch(() => {
        plan(id, entry, LOOK_AGAIN_MS);
      });
    });
  };
  const leave = (id: string, entry: Entry, kind: "use" | "look"): void => {
    entry.users -= 1;
    if (kind === "use") {
      entry.usedAtMs = clock.monotonicMs();
      entry.turnOff?.();
      entry.turnOff = undefined;
    }
    if (entry.users === 0 && entries.get(id) === entry) plan(id, entry, afterMs);
  };
  const wake = async (id: string, entry: Entry): Promise<void> => {
    if (entry.state === "awake") return;
    // What cannot be thawed shows at its use.
    entry.waking ??= thaw(id)
      .catch(() => undefined)
      .finally(() => {
        entry.state = "awake";
        entry.waking = undefined;
      });
    await entry.waking;
  };
  const enter = async (id: string, kind: "use" | "look"): Promise<Disposable> => {
    const entry = entryOf(id);
    entry.users += 1;
    await wake(id, entry);
    return {
      [Symbol.dispose]: () => {
        leave(id, entry, kind);
      },
    };
  };
  const settle = async (id: string, entry: Entry): Promise<void> => {
    const { usedAtMs } = entry;
    const leftMs = usedAtMs + afterMs - clock.monotonicMs();
    if (entry.users > 0) return;
    if (leftMs > 0) {
      plan(id, entry, leftMs);
      return;
    }
    entry.users += 1;
    const look = async () => {
      await wake(id, entry);
      return await Promise.all([inspect(id), prepare(id)]);
    };
    const [found, prepared] = await look().catch(() => [{ kind: "busy" } as const, undefined] as const);
    entry.users -= 1;
    if (entries.get(id) !== entry || entry.users > 0) return;
    if (found.kind === "gone") {
      entries.delete(id);
      return;
    }
    // Somebody who came and went meanwhile may have left something that runs.
    if (entry.usedAtMs !== usedAtMs) plan(id, entry, afterMs);
    else if (found.kind === "busy" || prepared === undefined) plan(id, entry, LOOK_AGAIN_MS);
    else if (isOpen) rest(id, entry, { prepared, processes: found.processes });
  };
  const rest = (
    id: string,
    entry: Entry,
    { prepared, processes }: { readonly prepared: Prepared; readonly processes: number },
  ): void => {
    try {
      freeze(prepared);
      entry.state = { processes };
    } catch {
      // It goes on awake, which costs the processor's time and nothing else.
      entry.state = "unknown";
      plan(id, entry, LOOK_AGAIN_MS);
    }
  };

  return {
    hold: (id) => enter(id, "use"),
    look: (id) => enter(id, "look"),
    restingProcesses: (id) => {
      const state = entries.get(id)?.state;
      return typeof state === "object" ? state.processes : undefined;
    },
    forget: (id) => {
      entries.get(id)?.turnOff?.();
      entries.delete(id);
    },
    close: () => {
      isOpen = false;
      for (const entry of entries.values()) {
        entry.turnOff?.();
        entry.turnOff = undefined;
      }
    },
  };
}
