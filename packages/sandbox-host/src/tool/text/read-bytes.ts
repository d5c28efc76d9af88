import { readSync } from "node:fs";
import { FileFailure } from "../../file/failure.ts";
import type { OpenFile } from "../../file/open-file.ts";
import { bytesOf } from "./outcome.ts";

/** Fills the buffer from this position on; fewer bytes than it holds only at the end of the file. */
export function readAt({ descriptor }: OpenFile, into: Uint8Array, position: number): number {
  let filled = 0;
  while (filled < into.length) {
    const read = readSync(descriptor, into, filled, into.length - filled, position + filled);
    if (read === 0) break;
    filled += read;
  }
  return filled;
}

/** A whole file, refused if it is larger than the limit. */
export function readWhole(file: OpenFile, limitBytes: number): Buffer {
  const { size } = file.stats;
  if (size > limitBytes) throw tooLarge(size, limitBytes);
  // One byte more shows a file that grew while it was read.
  const buffer = Buffer.allocUnsafe(size + 1);
  const read = readAt(file, buffer, 0);
  if (read > size) throw new FileFailure("PATH_REFUSED", "the file grew while it was read; try again");
  return buffer.subarray(0, read);
}

function tooLarge(size: number, limitBytes: number): FileFailure {
  return new FileFailure("PATH_REFUSED", `the file has ${bytesOf(size)}; at most ${limitBytes} are possible here`);
}
