/**
 * What goes between the service and the process that holds a terminal: a kind, a length and a body. What the terminal shows is not
 * among it: it has a pipe of its own, so that a reader who holds it up holds up nothing else.
 */
export interface TerminalFrame {
  readonly kind: number;
  readonly body: Buffer;
}

/** To the process that holds the terminal. */
export const TO_HELPER = {
  /** The command line, as JSON; the first frame and the only one of its kind. */
  start: 1,
  /** How long to try for, in ms, and bytes to type. It is answered by `taken`; the next comes after the answer. */
  input: 2,
  /** Columns and rows. */
  resize: 3,
  /** A signal for what is in the foreground. */
  signal: 4,
  /** Ends the command by SIGKILL. */
  kill: 5,
} as const;

/** From it. */
export const FROM_HELPER = {
  /** The command runs. */
  started: 1,
  /** It does not, and why: a text. */
  failed: 2,
  /** How many bytes of the last `input` the terminal has taken. */
  taken: 3,
  /** Exit code and signal, which is 0 if none ended the command. */
  ended: 4,
} as const;

/** The most that one `input` carries. */
export const MAX_INPUT_BYTES = 64 * 1024;
/** A command line with its environment. */
export const MAX_TO_HELPER_BYTES = 64 * 1024 * 1024;
/** A text of why a start failed. */
export const MAX_FROM_HELPER_BYTES = 4 * 1024;
const KIND_BYTES = 1;
const HEAD_BYTES = KIND_BYTES + 4;

export function encodeTerminalFrame(kind: number, body: Uint8Array = Buffer.alloc(0)): Buffer {
  const frame = Buffer.allocUnsafe(HEAD_BYTES + body.length);
  frame.writeUInt8(kind, 0);
  frame.writeUInt32BE(body.length, KIND_BYTES);
  frame.set(body, HEAD_BYTES);
  return frame;
}

/** A body of numbers, four bytes each. */
export function encodeNumbers(...numbers: readonly number[]): Buffer {
  const body = Buffer.allocUnsafe(numbers.length * 4);
  numbers.forEach((number, index) => body.writeUInt32BE(number, index * 4));
  return body;
}

/** The numbers of a body; fails if it has fewer or more bytes. */
export function decodeNumbers(body: Buffer, count: number): readonly number[] {
  if (body.length !== count * 4) throw new Error("a frame of a terminal has another length than its kind");
  return Array.from({ length: count }, (_, index) => body.readUInt32BE(index * 4));
}

/** Bytes as they come, given out in frames. */
export class TerminalFrameReader {
  readonly #maxBytes: number;
  #held: Buffer = Buffer.alloc(0);

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** The frames that are whole by now; fails on one that is longer than it may be. */
  read(bytes: Buffer): readonly TerminalFrame[] {
    this.#held = this.#held.length === 0 ? bytes : Buffer.concat([this.#held, bytes]);
    const frames: TerminalFrame[] = [];
    while (this.#held.length >= HEAD_BYTES) {
      const length = this.#held.readUInt32BE(KIND_BYTES);
      if (length > this.#maxBytes) throw new Error("a frame of a terminal is too long");
      const end = HEAD_BYTES + length;
      if (this.#held.length < end) break;
      frames.push({ kind: this.#held.readUInt8(0), body: this.#held.subarray(HEAD_BYTES, end) });
      this.#held = this.#held.subarray(end);
    }
    return frames;
  }
}
