import { raceSignal, SandboxError } from "@turnbox/core";

/** What shared work knows of its callers. */
export interface Followers {
  /** Aborts when all who followed the work have left. */
  readonly wanted: AbortSignal;
  /** Whether no caller waits at this moment. If so, the work is given up: later callers start another one. */
  giveUpIfAbandoned(): boolean;
}

/** A piece of work that several callers may wait for. It goes on when they leave, and learns when all of them have. */
export class SharedCall<T> {
  readonly result: Promise<T>;
  readonly #abandoned = new AbortController();
  #followers = 0;
  #isGivenUp = false;

  /** Starts the work. */
  constructor(work: (followers: Followers) => Promise<T>) {
    const giveUpIfAbandoned = (): boolean => {
      this.#isGivenUp ||= this.#abandoned.signal.aborted && this.#followers === 0;
      return this.#isGivenUp;
    };
    this.result = work({ wanted: this.#abandoned.signal, giveUpIfAbandoned });
  }

  /** Whether there is nothing to wait for: what was made is taken back. */
  get isGivenUp(): boolean {
    return this.#isGivenUp;
  }

  /** Waits for the result as long as this caller wants. */
  async follow(caller: AbortSignal): Promise<T> {
    this.#followers += 1;
    try {
      return await raceSignal(this.result, caller);
    } finally {
      this.#followers -= 1;
      if (this.#followers === 0) {
        this.#abandoned.abort(new SandboxError("CANCELLED", "nobody waits for it any more", { admitted: "no" }));
      }
    }
  }
}
