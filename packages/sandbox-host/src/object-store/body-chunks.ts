import { raceSignal } from "@turnbox/core";

/** What a body has thrown, so that it is told apart from failures of the store. */
export class BodyFailure extends Error {
  override readonly name = "BodyFailure";
}

/** The failure as callers get it: that of a body as it was thrown. */
export const unwrapBodyFailure = (thrown: unknown): unknown => (thrown instanceof BodyFailure ? thrown.cause : thrown);

/**
 * The chunks of a body that another component makes. It ends with the signal, also while the body does not go on, and the
 * body is ended with it.
 */
export async function* bodyChunks(
  body: AsyncIterable<Uint8Array>,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array, void, undefined> {
  const iterator = body[Symbol.asyncIterator]();
  let isOver = false;
  try {
    for (;;) {
      signal.throwIfAborted();
      const next = await raceSignal(nextOf(iterator), signal);
      isOver = next.done === true;
      if (next.done === true) return;
      if (next.value.byteLength > 0) yield next.value;
    }
  } finally {
    // A body that hangs would never let this settle.
    if (!isOver) iterator.return?.().then(undefined, () => undefined);
  }
}

async function nextOf(iterator: AsyncIterator<Uint8Array>): Promise<IteratorResult<Uint8Array, unknown>> {
  try {
    return await iterator.next();
  } catch (cause) {
    throw new BodyFailure("the body failed", { cause });
  }
}

export interface BodyPart {
  readonly content: Buffer;
  readonly isLast: boolean;
}

/** The chunks of a body in parts of exactly `bytes`, the last one shorter; one empty part if the body is empty. */
export async function* bodyParts(
  chunks: AsyncIterable<Uint8Array>,
  bytes: number,
): AsyncGenerator<BodyPart, void, undefined> {
  let part = Buffer.allocUnsafeSlow(bytes);
  let filled = 0;
  for await (const chunk of chunks) {
    for (let taken = 0; taken < chunk.byteLength; ) {
      if (filled === bytes) {
        yield { content: part, isLast: false };
        part = Buffer.allocUnsafeSlow(bytes);
        filled = 0;
      }
      const some = chunk.subarray(taken, taken + bytes - filled);
      part.set(some, filled);
      filled += some.byteLength;
      taken += some.byteLength;
    }
  }
  yield { content: part.subarray(0, filled), isLast: true };
}
