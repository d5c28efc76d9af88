import { SandboxError } from "@turnbox/client";
import { raceSignal } from "@turnbox/client/internal";
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

export const createSessionLife = (): SessionLife => new OneSessionLife();

class OneSessionLife implements SessionLife {
  #phase: LifePhase = "new";
  /** Whether the session has been made, also if its end was asked for meanwhile. */
  #made = false;
  #ending = new AbortController();
  #lastTurn: Promise<unknown> = Promise.resolve();
  #end: Promise<void> | undefined;

  get phase(): LifePhase {
    return this.#phase;
  }

  async create(make: Work<void>, call: Call = {}): Promise<void> {
    if (this.#phase !== "new") {
      const words = WORDS_OF_PHASE[this.#phase];
      throw new SandboxError("INVALID_STATE", `create: the session of this environment is ${words}`);
    }
    this.#phase = "creating";
    await this.#takeTurn(async () => {
      try {
        await this.#work("create", make, call);
        this.#made = true;
      } finally {
        if (this.#phase === "creating") this.#phase = this.#made ? "live" : "new";
      }
    });
    this.#assertLive("create");
  }

  async inTurn<T>(what: string, doIt: Work<T>, call: Call = {}): Promise<T> {
    this.#assertLive(what);
    return await this.#takeTurn(async () => {
      this.#assertLive(what);
      return await this.#work(what, doIt, call);
    });
  }

  async run<T>(what: string, doIt: Work<T>, call: Call = {}): Promise<T> {
    this.#assertLive(what);
    return await this.#work(what, doIt, call);
  }

  async destroy(remove: () => Promise<void>, call: Call = {}): Promise<void> {
    if (this.#phase === "destroyed") return;
    this.#end ??= this.#finish(remove);
    const end = this.#end;
    end.catch(() => undefined);
    try {
      await raceSignal(end, call.signal);
    } catch (thrown) {
      throw SandboxError.from(thrown);
    }
  }

  async #takeTurn<T>(work: () => Promise<T>): Promise<T> {
    const turn = this.#lastTurn.then(work);
    this.#lastTurn = turn.catch(() => undefined);
    return await turn;
  }

  #assertLive(what: string): void {
    if (this.#phase !== "live") throw notActive(WORDS_OF_PHASE[this.#phase], what);
  }

  /** Ends with the caller and with the session, and says which of them it was. */
  async #work<T>(what: string, doIt: Work<T>, { signal }: Call): Promise<T> {
    const own = this.#ending.signal;
    try {
      own.throwIfAborted();
      signal?.throwIfAborted();
      return await doIt(signal === undefined ? own : AbortSignal.any([signal, own]));
    } catch (thrown) {
      if (own.aborted && signal?.aborted !== true) throw notActive(WORDS_OF_PHASE.destroying, what);
      throw SandboxError.from(thrown);
    }
  }

  async #finish(remove: () => Promise<void>): Promise<void> {
    this.#phase = "destroying";
    this.#ending.abort(new SandboxError("CANCELLED", "the session is being destroyed"));
    try {
      await this.#takeTurn(async () => {
        if (this.#made) await remove();
      });
      this.#phase = "destroyed";
    } catch (thrown) {
      this.#phase = this.#made ? "live" : "new";
      this.#ending = new AbortController();
      throw thrown;
    } finally {
      this.#end = undefined;
    }
  }
}
