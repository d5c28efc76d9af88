import { SandboxError } from "@turnbox/core";
import { whileWanted } from "../../async/while-wanted.ts";

/** A piece of work that several callers may wait for. It goes on when they leave, and learns when all of them have. */
export class SharedCall<T> {
  readonly result: Promise<T>;
  readonly #abandoned = new AbortController();
  #followers = 0;

  /** Starts the work. Its signal aborts when all who followed it have left. */
  constructor(work: (wanted: AbortSignal) => Promise<T>) {
    this.result = work(this.#abandoned.signal);
  }

  /** Waits for the result as long as this caller wants. */
  async follow(caller: AbortSignal): Promise<T> {
    this.#followers += 1;
    try {
      return await whileWanted(this.result, caller);
    } finally {
      this.#followers -= 1;
      if (this.#followers === 0) {
        this.#abandoned.abort(new SandboxError("CANCELLED", "nobody waits for it any more", { admitted: "no" }));
      }
    }
  }
}
