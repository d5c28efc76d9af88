import type { OnReadOpts, Socket } from "node:net";

/** As much as a pipe holds by itself. */
const PIPE_BYTES = 64 * 1024;
/** A read of less is copied, so that it does not keep a block. */
const MIN_BYTES = 16 * 1024;
const MAX_BLOCK_BYTES = 512 * 1024;
/** A stream that has brought so much in bulk will bring more. */
const BULKY_BYTES = 256 * 1024;

/** Where all streams read into as long as little comes: what a read brings is taken out before the next one begins. */
const shared = Buffer.allocUnsafeSlow(PIPE_BYTES);

/**
 * How a stream reads: what comes in bulk lands end to end in large blocks, so that neighbours can be joined without a copy, and
 * one allocation serves many reads. A block is at most as large as all that came in bulk before it, which bounds what is kept in vain.
 * `onBulky` is told once of a stream that brings a lot.
 */
export function readInBlocks(streamOf: () => Socket, onBulky: () => void): OnReadOpts {
  let block = shared;
  let bulkBytes = 0;
  let isBulky = false;

  const count = (bytes: number): void => {
    bulkBytes += bytes;
    if (isBulky || bulkBytes < BULKY_BYTES) return;
    isBulky = true;
    onBulky();
  };
  const take = (bytes: number): Buffer => {
    if (bytes >= MIN_BYTES) count(bytes);
    if (bytes < MIN_BYTES || block === shared) return Buffer.from(block.subarray(0, bytes));
    const taken = block.subarray(0, bytes);
    block = block.subarray(bytes);
    return taken;
  };
  return {
    buffer: () => {
      const isUsed = block === shared ? bulkBytes > 0 : block.length < MIN_BYTES;
      if (isUsed) block = Buffer.allocUnsafeSlow(Math.min(Math.max(bulkBytes, PIPE_BYTES), MAX_BLOCK_BYTES));
      return block;
    },
    callback: (bytes) => streamOf().push(take(bytes)),
  };
}
