import { createGunzip } from "node:zlib";
import type { DescMethod } from "@bufbuild/protobuf";
import { invalidArgument, SandboxError } from "@turnbox/core";
import type { CallPermit } from "../admission/admission.ts";
import { LargeTurns } from "./large-turns.ts";
import { scanBinary } from "./scan-binary.ts";
import { scanJson } from "./scan-json.ts";
import { VALUE_BYTES } from "./scan-limits.ts";

export interface MessageRules {
  readonly method: DescMethod;
  readonly form: "json" | "binary";
  /** The most bytes of a message, also after decompression. */
  readonly maxBytes: number;
  readonly turns: LargeTurns;
  /** On whose account the bytes of the call are; known when the gate has let the call in. */
  readonly permit: () => CallPermit | undefined;
}

/** Holds the messages of one call to their bounds before they are parsed. */
export class MessageCheck {
  readonly #rules: MessageRules;

  constructor(rules: MessageRules) {
    this.#rules = rules;
  }

  get maxBytes(): number {
    return this.#rules.maxBytes;
  }

  /** Counts what has arrived of a message. Throws if it is too long or there is no room for it. */
  readonly arrive = (bytes: number): void => {
    if (bytes > this.#rules.maxBytes) throw this.tooLarge();
    if (this.#rules.permit()?.hold(bytes) === "no room") throw noRoom();
  };

  /** Throws if there is no room for so many bytes at this moment; nothing is held afterwards. */
  expect(bytes: number): void {
    this.arrive(bytes);
    this.letGo();
  }

  letGo(): void {
    this.#rules.permit()?.hold(0);
  }

  /** Waits for room and holds so many bytes. Throws if there is no room until the signal aborts. */
  async whenRoom(bytes: number, until: AbortSignal): Promise<void> {
    if (bytes > this.#rules.maxBytes) throw this.tooLarge();
    const permit = this.#rules.permit();
    while (permit?.hold(bytes) === "no room") {
      await firstOf(permit.room(), until);
      if (until.aborted) throw noRoom();
    }
  }

  /** The message as it was before compression. */
  async decompress(packed: Uint8Array): Promise<Uint8Array> {
    return await inflate(packed, (sum) => {
      if (sum > this.#rules.maxBytes) throw this.tooLarge();
      if (this.#rules.permit()?.hold(packed.length + sum) === "no room") throw noRoom();
    });
  }

  /** Throws if the message has too many values, lies too deep or does not decode. Large ones wait for their turn first. */
  async admit(message: Uint8Array): Promise<void> {
    if (LargeTurns.isLarge(message.length)) await this.#rules.turns.take();
    const { method, form, permit } = this.#rules;
    const values = form === "json" ? scanJson(message) : scanBinary(method.input, message);
    if (permit()?.hold(message.length + values * VALUE_BYTES) === "no room") throw noRoom();
  }

  tooLarge(): SandboxError {
    const { method, maxBytes } = this.#rules;
    return invalidArgument("request", `must have at most ${maxBytes} bytes in ${method.name}`);
  }
}

/** Resolves with the promise, or when the signal aborts. */
async function firstOf(promise: Promise<void>, signal: AbortSignal): Promise<void> {
  const { promise: aborted, resolve } = Promise.withResolvers<void>();
  const onAbort = (): void => {
    resolve();
  };
  signal.addEventListener("abort", onAbort, { once: true });
  if (signal.aborted) resolve();
  try {
    await Promise.race([promise, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

const RETRY_MS = 1000;

/** The bytes of a request are not admitted at this moment. */
const noRoom = (): SandboxError =>
  new SandboxError("OVERLOADED", "as many bytes of requests are in flight as are admitted", { retryAfterMs: RETRY_MS });

const PIECE_BYTES = 64 * 1024;

/**
 * What gzip made smaller, as it was. Every piece is shown to `onBytes`, with the sum so far, before the next one is made: what it
 * throws ends the work.
 */
export async function inflate(packed: Uint8Array, onBytes: (sum: number) => void): Promise<Buffer> {
  // An empty message is sent as it is.
  if (packed.length === 0) return Buffer.alloc(0);
  const gunzip = createGunzip({ chunkSize: PIECE_BYTES });
  const pieces: Buffer[] = [];
  let sum = 0;
  return await new Promise((resolve, reject) => {
    gunzip.on("data", (piece: Buffer) => {
      pieces.push(piece);
      sum += piece.length;
      try {
        onBytes(sum);
      } catch (thrown) {
        gunzip.destroy();
        reject(SandboxError.from(thrown));
      }
    });
    gunzip.once("error", () => {
      reject(invalidArgument("request", "does not decode: is not what gzip makes"));
    });
    gunzip.once("end", () => {
      resolve(Buffer.concat(pieces));
    });
    gunzip.end(packed);
  });
}
