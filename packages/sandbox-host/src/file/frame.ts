import { readSync, writeSync } from "node:fs";
import type { Readable } from "node:stream";
import type { Admitted, Reason } from "@turnbox/core";

/** A message between the service and a file worker: a head and bytes, each with its length before it. */
export interface Frame<Head> {
  readonly head: Head;
  readonly body: Buffer;
}

/** To a worker: a job; then, if it has a body, the body's pieces and how the body ended. */
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
  /** The body breaks off; the operation undoes what it began. */
  | { readonly kind: "broken" };

/** From a worker: the pieces, each with the operation's description of it, and then how the job ended. */
export type FromWorker =
  | { readonly kind: "ready" }
  | { readonly kind: "piece"; readonly about: unknown }
  /** `body` names the field of the output, a text, that is the frame's body and not in its head. */
  | { readonly kind: "done"; readonly output: unknown; readonly body: "none" | "content" }
  | {
      readonly kind: "failed";
      readonly reason: Reason;
      readonly message: string;
      readonly metadata: Readonly<Record<string, string>>;
      readonly admitted: Admitted | null;
      readonly detail: string;
    };

export const MAX_BODY_BYTES = 8 * 1024 * 1024;
/** A character of a string takes at most so many bytes. */
const MAX_CHARACTER_BYTES = 3;
/** The most characters of a body that is a text. */
export const MAX_TEXT_CHARACTERS = Math.floor(MAX_BODY_BYTES / MAX_CHARACTER_BYTES);
const MAX_HEAD_BYTES = 32 * 1024 * 1024;
const LENGTHS_BYTES = 8;
const NOTHING = Buffer.alloc(0);
/** Longer than most frames, so that one read is enough for them. */
const READ_BYTES = 64 * 1024;

export function encodeFrame(head: ToWorker | FromWorker, body: Uint8Array | string = NOTHING): Buffer {
  const text = JSON.stringify(head);
  const bodyBytes = typeof body === "string" ? Buffer.byteLength(body) : body.length;
  return fillFrame(Buffer.allocUnsafe(LENGTHS_BYTES + Buffer.byteLength(text) + bodyBytes), text, body);
}

/** The frame at the beginning of a buffer that is long enough for it. */
function fillFrame(into: Buffer, head: string, body: Uint8Array | string): Buffer {
  const headBytes = into.write(head, LENGTHS_BYTES);
  const bodyAt = LENGTHS_BYTES + headBytes;
  if (typeof body !== "string") into.set(body, bodyAt);
  const bodyBytes = typeof body === "string" ? into.write(body, bodyAt) : body.length;
  into.writeUInt32BE(headBytes, 0);
  into.writeUInt32BE(bodyBytes, 4);
  return into.subarray(0, bodyAt + bodyBytes);
}

function parseLengths(bytes: Buffer): { readonly head: number; readonly body: number } {
  const head = bytes.readUInt32BE(0);
  const body = bytes.readUInt32BE(4);
  if (head > MAX_HEAD_BYTES || body > MAX_BODY_BYTES) throw new Error("a frame is too long");
  return { head, body };
}

/** Collects bytes and cuts them into frames. */
function createInput() {
  let parts: Buffer[] = [];
  let held = 0;
  const all = (): Buffer => {
    if (parts.length > 1) parts = [Buffer.concat(parts)];
    return parts[0] ?? NOTHING;
  };
  return {
    held: (): number => held,
    add: (bytes: Buffer): void => {
      parts.push(bytes);
      held += bytes.length;
    },
    /** The next frame, or null if not all of it has come. */
    frame: <Head>(): Frame<Head> | null => {
      if (held < LENGTHS_BYTES) return null;
      if ((parts[0]?.length ?? 0) < LENGTHS_BYTES) all();
      const { head, body } = parseLengths(parts[0] ?? NOTHING);
      const end = LENGTHS_BYTES + head + body;
      if (held < end) return null;
      const bytes = all();
      held -= end;
      parts = held === 0 ? [] : [bytes.subarray(end)];
      const bodyAt = LENGTHS_BYTES + head;
      return {
        head: JSON.parse(bytes.toString("utf8", LENGTHS_BYTES, bodyAt)) as Head,
        body: bytes.subarray(bodyAt, end),
      };
    },
  };
}

/** Reads the frames of a descriptor one by one; blocks until the next is there. Null at the end. */
export function createBlockingReader(descriptor: number): () => Frame<ToWorker> | null {
  const input = createInput();
  const buffer = Buffer.allocUnsafe(READ_BYTES);
  return () => {
    for (;;) {
      const frame = input.frame<ToWorker>();
      if (frame !== null) return frame;
      const got = readSync(descriptor, buffer, 0, READ_BYTES, null);
      if (got === 0) return null;
      // A copy: the buffer is filled again.
      input.add(Buffer.from(buffer.subarray(0, got)));
    }
  };
}

/** A worker writes one frame at a time, so one buffer is enough for all frames that fit. */
const OUTGOING = Buffer.allocUnsafe(READ_BYTES);
/** Blocks until everything is written: nothing accumulates in the worker. */
export function writeFrameSync(descriptor: number, head: FromWorker, body: Uint8Array | string = NOTHING): void {
  const text = JSON.stringify(head);
  const mostBytes = LENGTHS_BYTES + (text.length + body.length) * MAX_CHARACTER_BYTES;
  const bytes = mostBytes <= OUTGOING.length ? fillFrame(OUTGOING, text, body) : encodeFrame(head, body);
  for (let sent = 0; sent < bytes.length; ) sent += writeSync(descriptor, bytes, sent);
}

/** The frames of a stream, one by one. */
export interface FrameReader {
  /** The next frame; null at the end. What is not read stays with the sender. Only one call at a time. */
  next(): Promise<Frame<FromWorker> | null>;
  /** Bytes that have come and are not read. */
  held(): number;
  /** Ends the reading, whatever the stream does: a call of `next` that waits returns null. */
  end(): void;
}

export function createFrameReader(stream: Readable): FrameReader {
  const input = createInput();
  let reading: PromiseWithResolvers<Frame<FromWorker> | null> | undefined;
  let isOver = false;
  /** Settles a call of `next` if its frame is there; returns whether a call still waits. */
  const give = (): "waits" | "idle" => {
    const waiting = reading;
    if (waiting === undefined) return "idle";
    try {
      const frame = input.frame<FromWorker>();
      if (frame === null && !isOver) return "waits";
      waiting.resolve(frame);
    } catch (thrown) {
      waiting.reject(thrown);
    }
    reading = undefined;
    return "idle";
  };
  const end = (): void => {
    isOver = true;
    give();
  };
  // The stream flows while a call waits: to read after a `readable` event takes longer.
  stream.on("data", (bytes: Buffer) => {
    input.add(bytes);
    if (give() === "idle" && input.held() > 0) stream.pause();
  });
  for (const event of ["end", "close", "error"]) stream.on(event, end);

  return {
    next: () => {
      const waiting = Promise.withResolvers<Frame<FromWorker> | null>();
      reading = waiting;
      if (give() === "waits" && stream.isPaused()) stream.resume();
      return waiting.promise;
    },
    held: input.held,
    end,
  };
}
