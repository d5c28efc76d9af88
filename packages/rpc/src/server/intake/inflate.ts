import { createGunzip } from "node:zlib";
import { invalidArgument, SandboxError } from "@turnbox/core";

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
