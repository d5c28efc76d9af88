import { SandboxError } from "@turnbox/client";
import { untilAborted } from "@turnbox/client/internal";
import { notActive } from "../environment-error.ts";
import type { EnvironmentState } from "../execution-environment.ts";

/** What the client itself knows of its session. */
export type LifePhase = "new" | "creating" | "live" | "destroying" | "destroyed";

interface Call {
  readonly signal?: AbortSignal | undefined;
}

type Work<T> = (signal: AbortSignal) => Promise<T>;

/** What an environment that keeps its state itself calls a phase. */
export const STATE_OF_PHASE = {
  new: "creating",
  creating: "creating",
  live: "active",
  destroying: "destroying",
  destroyed: "destroyed",
} as const satisfies Record<LifePhase, EnvironmentState>;

/**
 * The life of the one session of an environment: made once, ended once, and what happens in between. Lifecycle calls take
 * their turn; the end does not wait for them but ends them first.
 */
export interface SessionLife {
  readonly phase: LifePhase;
  /** Makes it. Work that fails has to clean up; the life is `new` again then. */
  create(work: Work<void>, call?: Call): Promise<void>;
  /** A lifecycle call on a live session, in its turn. */
  inTurn<T>(what: string, work: Work<T>, call?: Call): Promise<T>;
  /** Any other call on a live session. */
  run<T>(what: string, work: Work<T>, call?: Call): Promise<T>;
  /** Ends it; joins an end under way, which goes on for the others when one leaves. One that fails may be asked for again. */
  destroy(work: () => Promise<void>, call?: Call): Promise<void>;
}

const WORDS_OF_PHASE: Readonly<Record<LifePhase, string>> = {
  new: "not created yet",
  creating: "being created",
  live: "active",
  destroying: "being destroyed",
  destroyed: "destroyed",
};

export function createSessionLife(): SessionLife {
  let phase: LifePhase = "new";
  /** Whether the session has been made, also where its end was asked for meanwhile. */
  let made = false;
  let ending = new AbortController();
  let lastTurn: Promise<unknown> = Promise.resolve();
  let end: Promise<void> | undefined;

  const takeTurn = async <T>(work: () => Promise<T>): Promise<T> => {
    const turn = lastTurn.then(work);
    lastTurn = turn.catch(() => undefined);
    return await turn;
  };
  const assertLive = (what: string): void => {
    if (phase !== "live") throw notActive(WORDS_OF_PHASE[phase], what);
  };
  /** Ends with the caller and with the session, and says which of them it was. */
  const work = async <T>(what: string, doIt: Work<T>, { signal }: Call): Promise<T> => {
    const own = ending.signal;
    try {
      own.throwIfAborted();
      signal?.throwIfAborted();
      return await doIt(signal === undefined ? own : AbortSignal.any([signal, own]));
    } catch (thrown) {
      if (own.aborted && signal?.aborted !== true) throw notActive(WORDS_OF_PHASE.destroying, what);
      throw SandboxError.from(thrown);
    }
  };

  const finish = async (remove: () => Promise<void>): Promise<void> => {
    phase = "destroying";
    ending.abort(new SandboxError("CANCELLED", "the session is being destroyed"));
    try {
      await takeTurn(async () => {
        if (made) await remove();
      });
      phase = "destroyed";
    } catch (thrown) {
      phase = made ? "live" : "new";
      ending = new AbortController();
      throw thrown;
    } finally {
      end = undefined;
    }
  };
  return {
    get phase() {
      return phase;
    },
    create: async (make, call = {}) => {
      if (phase !== "new")
        throw new SandboxError("INVALID_STATE", `create: the session of this environment is ${WORDS_OF_PHASE[phase]}`);
      phase = "creating";
      await takeTurn(async () => {
        try {
          await work("create", make, call);
          made = true;
        } finally {
          if (phase === "creating") phase = made ? "live" : "new";
        }
      });
      assertLive("create");
    },
    inTurn: async (what, doIt, call = {}) => {
      assertLive(what);
      return await takeTurn(async () => {
        assertLive(what);
        return await work(what, doIt, call);
      });
    },
    run: async (what, doIt, call = {}) => {
      assertLive(what);
      return await work(what, doIt, call);
    },
    destroy: async (remove, call = {}) => {
      if (phase === "destroyed") return;
      end ??= finish(remove);
      end.catch(() => undefined);
      try {
        await (call.signal === undefined ? end : untilAborted(end, call.signal));
      } catch (thrown) {
        throw SandboxError.from(thrown);
      }
    },
  };
}
