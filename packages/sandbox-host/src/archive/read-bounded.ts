import type { Readable } from "node:stream";
import type { Call } from "@turnbox/core";
import type { ObjectStore } from "../object-store/object-store.ts";
import { damaged } from "./damage.ts";

export interface BoundedRead {
  readonly key: string;
  readonly most: number;
}

/** A whole object that is small. Fails with `ARCHIVE_DAMAGED` if it is larger than `most`. */
export async function readBounded(
  store: ObjectStore,
  { key, most }: BoundedRead,
  call: Call,
): Promise<{ readonly bytes: Buffer; readonly etag: string }> {
  const { body, bytes, etag } = await store.get(key, {}, call);
  const whole = await readBody(body, bytes <= most ? bytes : undefined, call);
  if (whole === undefined) throw damaged(`${key}: is not an object of at most ${most} bytes`, { fault: "wrong size" });
  return { bytes: whole, etag };
}

/** The bytes of a body, or undefined if there are more or fewer than `bytes`. It is destroyed in any case. */
export async function readBody(
  body: Readable,
  bytes: number | undefined,
  { signal }: Call,
): Promise<Buffer | undefined> {
  const stop = (): void => {
    body.destroy(signal.reason as Error);
  };
  signal.addEventListener("abort", stop, { once: true });
  try {
    signal.throwIfAborted();
    return bytes === undefined ? undefined : await fill(Buffer.allocUnsafe(bytes), body);
  } finally {
    signal.removeEventListener("abort", stop);
    body.destroy();
  }
}

async function fill(whole: Buffer, body: AsyncIterable<Uint8Array>): Promise<Buffer | undefined> {
  let filled = 0;
  for await (const chunk of body) {
    if (filled + chunk.byteLength > whole.byteLength) return undefined;
    whole.set(chunk, filled);
    filled += chunk.byteLength;
  }
  return filled === whole.byteLength ? whole : undefined;
}
