import { Readable } from "node:stream";
import { type Call, type LinkedSignal, linkSignals } from "@turnbox/core";

const CLOSED = new Error("the stream was closed");

/**
 * A stream of what a generator gives. To destroy it aborts the generator's signal, so that what the generator waits for ends
 * too; it is closed when the generator has ended.
 */
export class PlainStream extends Readable {
  readonly #link: LinkedSignal;
  readonly #chunks: AsyncGenerator<Buffer>;

  constructor(generate: (call: Call) => AsyncGenerator<Buffer>, call: Call) {
    super();
    this.#link = linkSignals([call.signal]);
    this.#chunks = generate(this.#link);
  }

  override _read(): void {
    this.#chunks.next().then(
      ({ done, value }) => this.push(done === true ? null : value),
      (failure: unknown) => this.destroy(failure as Error),
    );
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#link.abort(error ?? CLOSED);
    const end = (): void => {
      this.#link[Symbol.dispose]();
      callback(error);
    };
    this.#chunks.return(undefined).then(end, end);
  }
}
