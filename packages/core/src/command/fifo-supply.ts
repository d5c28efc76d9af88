import { spawn } from "node:child_process";
import { once } from "node:events";
import { constants, openSync } from "node:fs";
import { type FileHandle, mkdtemp, open, rm } from "node:fs/promises";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { SandboxError } from "../error/sandbox-error.ts";

/** How many are made by one `mkfifo`, and so how many descriptors are held in store at most. */
const BATCH = 24;
const MKFIFO_DEADLINE_MS = 10_000;

/** One direction: an end that the child is given, and a stream for this process. */
export interface Fifo {
  readonly childEnd: FileHandle;
  readonly stream: Socket;
}

export interface FifoSupply {
  take(direction: "to_child" | "from_child"): Promise<Fifo>;
}

/**
 * Makes real pipes. Node's own are socket pairs, which a program cannot open again by `/dev/stdout` and the like.
 *
 * Fifos are made by name in batches and lose their names at once. Each is held open for both directions, so that opening
 * its two ends (by `/proc/self/fd`) cannot block, and neither end shares its flags with the other.
 */
export function createFifoSupply(path: string): FifoSupply {
  const ready: FileHandle[] = [];
  let refill: Promise<void> | undefined;

  const next = async (): Promise<FileHandle> => {
    for (;;) {
      const handle = ready.shift();
      if (handle !== undefined) return handle;
      refill ??= makeBatch(path)
        .then((made) => void ready.push(...made))
        .finally(() => {
          refill = undefined;
        });
      await refill;
    }
  };

  return {
    take: async (direction) => {
      await using both = await next();
      const name = `/proc/self/fd/${String(both.fd)}`;
      const childEnd = await open(name, direction === "to_child" ? constants.O_RDONLY : constants.O_WRONLY);
      const ownMode = direction === "to_child" ? constants.O_WRONLY : constants.O_RDONLY;
      const own = openSync(name, ownMode | constants.O_NONBLOCK);
      const stream = new Socket({ fd: own, readable: direction === "from_child", writable: direction === "to_child" });
      return { childEnd, stream };
    },
  };
}

async function makeBatch(path: string): Promise<readonly FileHandle[]> {
  const directory = await mkdtemp(join(tmpdir(), "turnbox-fifo-"));
  try {
    const names = Array.from({ length: BATCH }, (_, index) => join(directory, String(index)));
    const child = spawn("mkfifo", ["-m", "600", "--", ...names], {
      env: { PATH: path },
      stdio: "ignore",
      timeout: MKFIFO_DEADLINE_MS,
    });
    const [exitCode] = (await once(child, "exit")) as [number | null];
    if (exitCode !== 0) throw new Error(`mkfifo exited with ${String(exitCode)}`);
    return await Promise.all(names.map((name) => open(name, constants.O_RDWR | constants.O_NONBLOCK)));
  } catch (cause) {
    throw new SandboxError("COMMAND_MISSING", "mkfifo does not work", { cause, metadata: { command: "mkfifo" } });
  } finally {
    await rm(directory, { recursive: true, force: true });
  }
}
