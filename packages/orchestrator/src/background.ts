/** Work that goes on by itself. Disposal aborts its signal and waits for all of it. */
export class Background implements AsyncDisposable {
  readonly #over = new AbortController();
  readonly #running: Promise<void>[] = [];
  readonly #endReason: () => Error;

  /** `endReason` makes what the signal aborts with. */
  constructor(endReason: () => Error) {
    this.#endReason = endReason;
  }

  get signal(): AbortSignal {
    return this.#over.signal;
  }

  /** Starts the work. It ends with the signal and must not reject. */
  run(work: (call: { readonly signal: AbortSignal }) => Promise<void>): void {
    this.#running.push(work({ signal: this.#over.signal }));
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over.abort(this.#endReason());
    await Promise.all(this.#running);
  }
}
