import { readSync } from "node:fs";
import { toEntry } from "../entry.ts";
import type { OperationContext } from "../operation.ts";

export interface ReadInput {
  readonly path: string;
  readonly offset: number;
  /** The most bytes to send; null means all up to the end. */
  readonly limitBytes: number | null;
}

const PIECE_BYTES = 256 * 1024;

/**
 * Sends a file. The first piece describes the file and has no bytes. No more is sent than the file had when it was opened,
 * so the reading ends even if the file grows without end; if it shrinks, the reading ends at its new end.
 */
export function readFile(
  { walk, send }: OperationContext,
  { path, offset, limitBytes }: ReadInput,
): { readonly bytes: number } {
  const file = walk.open(path);
  send(new Uint8Array(), toEntry(file.path, file.stats));
  const endAt = Math.min(file.stats.size, offset + (limitBytes ?? Number.MAX_SAFE_INTEGER));
  const buffer = Buffer.allocUnsafe(PIECE_BYTES);
  let at = offset;
  while (at < endAt) {
    const got = readSync(file.descriptor, buffer, 0, Math.min(PIECE_BYTES, endAt - at), at);
    if (got === 0) break;
    send(buffer.subarray(0, got));
    at += got;
  }
  return { bytes: Math.max(0, at - offset) };
}
