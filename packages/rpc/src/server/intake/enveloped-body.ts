import { invalidArgument } from "@turnbox/core";
import type { MessageCheck } from "./message-check.ts";
import { PieceReader } from "./piece-reader.ts";

export interface EnvelopedBodyOptions {
  readonly check: MessageCheck;
  /** What compressed messages are compressed with. */
  readonly encoding: "gzip" | "none";
  /** Aborts when the caller is gone. */
  readonly caller: AbortSignal;
}

const OVER: IteratorResult<Uint8Array> = { done: true, value: undefined };
/** Flags, and the length of the message in 4 bytes. */
const HEAD_BYTES = 5;
const COMPRESSED = 1;
const SHORT_BYTES = 16 * 1024;
/** How long a stream that goes on waits for room. */
const ROOM_MS = 60_000;

/**
 * A body of messages in envelopes. Each is checked and given on as one piece, as it was before compression. The first one is refused
 * if there is no room for it; later ones wait, and hold up their sender.
 */
export class EnvelopedBody implements AsyncIterator<Uint8Array> {
  readonly #pieces: PieceReader;
  readonly #options: EnvelopedBodyOptions;
  #position: "first" | "later" = "first";
  /** A message whose head is given on already. */
  #following: Uint8Array | undefined;

  constructor(source: AsyncIterable<Uint8Array>, options: EnvelopedBodyOptions) {
    this.#pieces = new PieceReader(source);
    this.#options = options;
  }

  async next(): Promise<IteratorResult<Uint8Array>> {
    const following = this.#following;
    this.#following = undefined;
    if (following !== undefined) return { done: false, value: following };
    const { check, encoding } = this.#options;
    if (this.#position === "later") check.letGo();
    const head = await this.#pieces.read(HEAD_BYTES);
    if (head.length === 0) return OVER;
    const { flags, length } = readHead(head);
    if ((flags & ~COMPRESSED) !== 0)
      throw invalidArgument("request", `has an envelope with the unknown flags ${flags}`);
    if (length > check.maxBytes) throw check.tooLarge();
    const data = await this.#read(length);
    this.#position = "later";
    if ((flags & COMPRESSED) === 0) {
      await check.admit(data);
      return this.#give(data);
    }
    if (encoding === "none") throw invalidArgument("request", "has a compressed message and names no compression");
    const message = await check.decompress(data);
    await check.admit(message);
    return this.#give(message);
  }

  async return(): Promise<IteratorResult<Uint8Array>> {
    await this.#pieces.return();
    return OVER;
  }

  /** The message behind a head of its own; a long one is not copied for it. */
  #give(message: Uint8Array): IteratorResult<Uint8Array> {
    const isShort = message.length < SHORT_BYTES;
    const head = Buffer.allocUnsafe(HEAD_BYTES + (isShort ? message.length : 0));
    head.writeUInt8(0, 0);
    head.writeUInt32BE(message.length, 1);
    if (isShort) head.set(message, HEAD_BYTES);
    else this.#following = message;
    return { done: false, value: head };
  }

  async #read(length: number): Promise<Uint8Array> {
    const { check, caller } = this.#options;
    if (length === 0) return new Uint8Array(0);
    if (this.#position === "later") {
      await check.whenRoom(length, AbortSignal.any([caller, AbortSignal.timeout(ROOM_MS)]));
    } else {
      check.expect(length);
    }
    const data = await this.#pieces.read(length, this.#position === "first" ? check.arrive : undefined);
    if (data.length < length) throw invalidArgument("request", "ends in the middle of an envelope");
    return data;
  }
}

function readHead(head: Uint8Array): { readonly flags: number; readonly length: number } {
  if (head.length < HEAD_BYTES) throw invalidArgument("request", "ends in the middle of an envelope");
  const view = new DataView(head.buffer, head.byteOffset, HEAD_BYTES);
  return { flags: view.getUint8(0), length: view.getUint32(1) };
}
