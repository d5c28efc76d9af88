import { type Log, SandboxError } from "@turnbox/core";

/**
 * How what has been put together ends: `failed` if a part could not be made, `abandoned` as a crash leaves it, `stopped`
 * when the service ends.
 */
export type Ending = "abandoned" | "failed" | "stopped";

/** Is called when a part was made and when it was released, for tests; what it throws is the failure of the next step. */
export type PartHook = (event: "made" | "released", part: string) => void;

/**
 * The parts of a service on one stack: whatever the ending, they are released in reverse order, each after all that were
 * made later. A failed one releases all that it can, and leaves its caller the failure that it began with.
 */
export class Assembly implements AsyncDisposable {
  readonly #stack = new AsyncDisposableStack();
  readonly #log: Log;
  readonly #hook: PartHook;
  #ending: Ending = "failed";

  constructor(options: { readonly log: Log; readonly hook?: PartHook | undefined }) {
    this.#log = options.log;
    this.#hook = options.hook ?? ((): void => undefined);
  }

  /** Takes over a part that was just made. */
  use<Part extends AsyncDisposable>(name: string, part: Part): Part {
    this.defer(name, () => part[Symbol.asyncDispose]());
    return part;
  }

  /** Takes over something whose release depends on the ending. */
  defer(name: string, release: (ending: Ending) => void | PromiseLike<void>): void {
    this.#stack.defer(async () => {
      await this.#release(name, release);
      this.#hook("released", name);
    });
    this.#hook("made", name);
  }

  async #release(name: string, release: (ending: Ending) => void | PromiseLike<void>): Promise<void> {
    try {
      await release(this.#ending);
    } catch (thrown) {
      if (this.#ending !== "failed") throw thrown;
      this.#log.warn({ err: SandboxError.from(thrown), part: name }, "a part of a failed start could not be released");
    }
  }

  /** Releases all parts; the second call does nothing. */
  async end(ending: Ending): Promise<void> {
    this.#ending = ending;
    await this.#stack.disposeAsync();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.end("failed");
  }
}
