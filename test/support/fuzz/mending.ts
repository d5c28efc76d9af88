import { Refusal } from "../host.ts";
import { poll } from "../process.ts";

const MEND_MS = 120_000;

/** Undefined if the service refused; anything else that went wrong fails the test. */
export function ifRefused(thrown: unknown): undefined {
  if (!(thrown instanceof Refusal)) throw thrown;
}

/** Work that inputs in flight may disturb in any way: it is tried until it is done, and several callers share one try. */
export class Mending {
  readonly #work: () => Promise<void>;
  #running: Promise<void> | undefined;

  constructor(work: () => Promise<void>) {
    this.#work = work;
  }

  async run(): Promise<void> {
    this.#running ??= this.#untilDone().finally(() => (this.#running = undefined));
    await this.#running;
  }

  async #untilDone(): Promise<void> {
    let last = "";
    const attempt = async (): Promise<true | undefined> => {
      try {
        await this.#work();
        return true;
      } catch (thrown) {
        last = String(thrown);
        return undefined;
      }
    };
    await poll("the targets to be in place", attempt, MEND_MS).catch((thrown: unknown) => {
      throw new Error(`${String(thrown)}: ${last}`);
    });
  }
}
