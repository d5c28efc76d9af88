import { readSync, writeSync } from "node:fs";
import type { Readable } from "node:stream";
import type { Reason } from "@turnbox/core";

/** What goes between the service and a file worker: a head and bytes, each with its length before it. */
export interface Frame<Head> {
  readonly head: Head;
  readonly body: Buffer;
}

/** To a worker: a job, then, where it has a body, the body's pieces and how it ended. */
export type ToWorker =
  | {
      readonly kind: "job";
      readonly name: string;
      readonly root: string;
      /** The filesystem that the root has to be on; null for any. */
      readonly device: number | null;
      readonly input: unknown;
      readonly body: "none" | "follows";
    }
  | { readonly kind: "data" }
  | { readonly kind: "end" }
  /** The body breaks off: the operation is undone. */
  | { readonly kind: "broken" };

/** From a worker: pieces as they come, each with what the operation says about it, and then how the job ended. */
export type FromWorker =
  | { readonly kind: "ready" }
  | { readonly kind: "piece"; readonly about: unknown }
  | { readonly kind: "done"; readonly output: unknown }
  | {
      readonly kind: "failed";
      readonly reason: Reason;
      readonly message: string;
      readonly metadata: Readonly<Record<string, string>>;
      readonly detail: string;
    };

export const MAX_BODY_BYTES = 8 * 1024 * 1024;
const MAX_HEAD_BYTES = 32 * 1024 * 1024;
const LENGTHS_BYTES = 8;
const NOTHING = Buffer.alloc(0);

export function encodeFrame(head: ToWorker | FromWorker, body: Uint8Array = NOTHING): Buffer {
  const text = Buffer.from(JSON.stringify(head), "utf8");
  const lengths = Buffer.allocUnsafe(LENGTHS_BYTES);
  lengths.writeUInt32BE(text.length, 0);
  lengths.writeUInt32BE(body.length, 4);
  return Buffer.concat([lengths, text, body]);
}

function parseLengths(bytes: Buffer): { readonly head: number; readonly body: number } {
  const head = bytes.readUInt32BE(0);
  const body = bytes.readUInt32BE(4);
  if (head > MAX_HEAD_BYTES || body > MAX_BODY_BYTES) throw new Error("a frame is too long");
  return { head, body };
}

function parseHead(bytes: Buffer): unknown {
  return JSON.parse(bytes.toString("utf8"));
}

/** The next frame of a descriptor; blocks until it is there. Null at the end. */
export function readFrameSync(descriptor: number): Frame<ToWorker> | null {
  const lengths = readExactly(descriptor, LENGTHS_BYTES);
  if (lengths === null) return null;
  const { head, body } = parseLengths(lengths);
  const rest = readExactly(descriptor, head + body);
  return rest === null ? null : { head: parseHead(rest.subarray(0, head)) as ToWorker, body: rest.subarray(head) };
}

function readExactly(descriptor: number, bytes: number): Buffer | null {
  const buffer = Buffer.allocUnsafe(bytes);
  for (let got = 0; got < bytes; ) {
    const more = readSync(descriptor, buffer, got, bytes - got, null);
    if (more === 0) return null;
    got += more;
  }
  return buffer;
}

/** Blocks until everything is taken: nothing piles up in the worker. */
export function writeFrameSync(descriptor: number, head: FromWorker, body?: Uint8Array): void {
  const bytes = encodeFrame(head, body);
  for (let sent = 0; sent < bytes.length; ) sent += writeSync(descriptor, bytes, sent);
}

/** Reads the frames of a stream one by one; what is not asked for stays with the sender. Null at the end. */
export function createFrameReader(stream: Readable): () => Promise<Frame<FromWorker> | null> {
  let wake: () => void = () => undefined;
  for (const event of ["readable", "end", "close", "error"])
    stream.on(event, () => {
      wake();
    });

  const take = async (bytes: number): Promise<Buffer | null> => {
    const parts: Buffer[] = [];
    for (let missing = bytes; missing > 0; ) {
      // A stream gives no more at once than it has buffered.
      const part = stream.read(Math.min(missing, Math.max(stream.readableLength, 1))) as Buffer | null;
      if (part !== null) {
        parts.push(part);
        missing -= part.length;
      } else if (stream.readableEnded || stream.destroyed) return null;
      else {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
    }
    return parts.length === 1 && parts[0] !== undefined ? parts[0] : Buffer.concat(parts);
  };

  return async () => {
    const lengths = await take(LENGTHS_BYTES);
    if (lengths === null) return null;
    const { head, body } = parseLengths(lengths);
    const text = await take(head);
    const bytes = body === 0 ? NOTHING : await take(body);
    return text === null || bytes === null ? null : { head: parseHead(text) as FromWorker, body: bytes };
  };
}
