import { closeSync, constants, existsSync, openSync, readFileSync, writeSync } from "node:fs";
import { join } from "node:path";
import { type Clock, hasErrno, invalidArgument, SandboxError } from "@turnbox/core";

/**
 * The standard input of one process, written at offsets. Bytes below what was accepted are not written again, so a
 * request that comes twice has its effect once.
 *
 * The bytes go into the FIFO that the process reads, and the count of accepted ones into a file next to it by the very
 * next system call, with nothing in between that a `kill -9` could reach but the gap between the two calls themselves. A
 * crash right there makes the last piece, at most 64 KiB, be written again when its writer comes back. The count does not
 * outlive a crash of the machine; neither does the process.
 */
export interface ProcessInput {
  /** All bytes accepted so far. */
  readonly acceptedBytes: number;
  /**
   * Writes what is new of the data, as far as the process takes it within a moment, and returns `acceptedBytes`. An
   * offset behind a gap is refused.
   */
  write(offset: number, data: Uint8Array, call: { readonly signal: AbortSignal }): Promise<number>;
  /** From now on nothing new is taken, also by a later service. */
  end(): void;
}

const PIECE_BYTES = 64 * 1024;
/** How long a call waits for room in a full pipe. */
const PATIENCE_MS = 1000;
const POLL_MS = 10;
const DIGITS = 16;

export function createProcessInput(directory: string, clock: Clock): ProcessInput {
  const countPath = join(directory, "accepted");
  const endPath = join(directory, "input-ended");
  let acceptedBytes = readCount(countPath);

  /** Writes one piece and its count; false if the pipe is full. */
  const push = (pipe: number, count: number, data: Uint8Array): boolean => {
    try {
      acceptedBytes += writeSync(pipe, data, 0, Math.min(data.length, PIECE_BYTES));
    } catch (thrown) {
      if (hasErrno(thrown, "EAGAIN")) return false;
      throw hasErrno(thrown, "EPIPE") ? closed() : thrown;
    }
    writeSync(count, String(acceptedBytes).padStart(DIGITS, "0"), 0);
    return true;
  };

  return {
    get acceptedBytes() {
      return acceptedBytes;
    },
    write: async (offset, data, { signal }) => {
      if (offset > acceptedBytes)
        throw invalidArgument("offset", `must be at most ${acceptedBytes}, what was accepted`);
      const end = offset + data.length;
      if (end <= acceptedBytes) return acceptedBytes;
      if (existsSync(endPath)) throw closed();
      const pipe = openPipe(join(directory, "input"));
      try {
        const count = openSync(countPath, constants.O_WRONLY | constants.O_CREAT, 0o600);
        try {
          const untilMs = clock.monotonicMs() + PATIENCE_MS;
          while (acceptedBytes < end && !signal.aborted) {
            if (push(pipe, count, data.subarray(acceptedBytes - offset))) continue;
            if (clock.monotonicMs() > untilMs) break;
            await clock.sleep(POLL_MS, { signal }).catch(() => undefined);
          }
        } finally {
          closeSync(count);
        }
      } finally {
        closeSync(pipe);
      }
      return acceptedBytes;
    },
    end: () => {
      closeSync(openSync(endPath, "w", 0o600));
    },
  };
}

/** Opening a FIFO for writing alone fails at once if no process reads it. */
function openPipe(path: string): number {
  try {
    return openSync(path, constants.O_WRONLY | constants.O_NONBLOCK);
  } catch (thrown) {
    throw hasErrno(thrown, "ENXIO") || hasErrno(thrown, "ENOENT") ? closed() : thrown;
  }
}

function closed(): SandboxError {
  return new SandboxError("INVALID_STATE", "the process reads no input any more");
}

function readCount(path: string): number {
  try {
    return Number(readFileSync(path, "utf8"));
  } catch {
    return 0;
  }
}
