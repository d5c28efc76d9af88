import { invalidArgument } from "@turnbox/core";
import type { MessageCheck } from "./message-check.ts";
import { PieceReader } from "./piece-reader.ts";

export interface WholeBodyOptions {
  readonly check: MessageCheck;
  /** What the request's head says of its length; undefined if it says nothing. */
  readonly promisedBytes: number | undefined;
  readonly encoding: "gzip" | "none";
}

const OVER: IteratorResult<Uint8Array> = { done: true, value: undefined };

/** A body that is one message, checked and in one piece, as it was before compression. */
export class WholeBody implements AsyncIterator<Uint8Array> {
  readonly #pieces: PieceReader;
  readonly #options: WholeBodyOptions;
  #asked: "no" | "yes" = "no";

  constructor(source: AsyncIterable<Uint8Array>, options: WholeBodyOptions) {
    this.#pieces = new PieceReader(source);
    this.#options = options;
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    if (this.#asked === "yes") return OVER;
    this.#asked = "yes";
    const { check, promisedBytes, encoding } = this.#options;
    if (promisedBytes !== undefined) check.expect(promisedBytes);
    // One more than is taken shows that there is more.
    const body = await this.#pieces.read(check.maxBytes + 1, check.arrive);
    if (promisedBytes !== undefined && body.length !== promisedBytes)
      throw invalidArgument("request", `must have the ${promisedBytes} bytes that its head promises`);
    const message = encoding === "gzip" ? await check.decompress(body) : body;
    await check.admit(message);
    return { done: false, value: message };
  }

  async return(): Promise<IteratorResult<Uint8Array>> {
    await this.#pieces.return();
    return OVER;
  }
}
