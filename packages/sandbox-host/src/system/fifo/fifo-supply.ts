import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, openSync } from "node:fs";
import { type FileHandle, mkdtemp, open, rmdir, unlink } from "node:fs/promises";
import { Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Helper } from "../helper/helper.ts";
import { SandboxError } from "@turnbox/core";
import { reasonOfStart, spawned, startFailure, SYSTEM_PATH } from "@turnbox/core/command";
import { PERL, programPath } from "../program.ts";
import { readInBlocks } from "./read-blocks.ts";

/** How many are made by one `mkfifo`. */
const BATCH = 24;
/** When fewer are in store, the next batch is made ahead of its need; so the store holds at most this many more than a batch. */
const FEW = 12;
const MKFIFO_DEADLINE_MS = 10_000;

/** One direction: an end that the child is given, and a stream for this process. */
export interface Fifo {
  readonly childEnd: FileHandle;
  readonly stream: Socket;
}

export interface FifoSupplyOptions {
  /** The PATH that `mkfifo` is looked up in. Default `SYSTEM_PATH`. */
  readonly path?: string;
  /** Runs `mkfifo` and widens pipes. Without it, `mkfifo` is a child of this process and no pipe is widened. */
  readonly helper?: Helper;
}

/**
 * Makes real pipes. Node's own are socket pairs, which a program cannot open again by `/dev/stdout` and the like.
 *
 * FIFOs are made by name in batches and lose their names at once. Each is held open for both directions, so that opening
 * its two ends (by `/proc/self/fd`) cannot block, and neither end shares its flags with the other.
 *
 * Disposal closes those in store, and none is taken afterwards. One that was taken belongs to its caller.
 */
export class FifoSupply implements AsyncDisposable {
  readonly #path: string;
  readonly #helper: Helper | undefined;
  readonly #ready: FileHandle[] = [];
  #filling: Promise<void> | undefined;
  #isClosed = false;

  constructor({ path = SYSTEM_PATH, helper }: FifoSupplyOptions = {}) {
    this.#path = path;
    this.#helper = helper;
  }

  /** Throws `OVERLOADED` if the system has no descriptor or process left, and holds nothing then. */
  async take(direction: "to_child" | "from_child"): Promise<Fifo> {
    await using both = await this.#next();
    const name = `/proc/self/fd/${both.fd}`;
    const ofChild = direction === "to_child" ? constants.O_RDONLY : constants.O_WRONLY;
    const childEnd = await open(name, ofChild).catch((cause: unknown) => {
      throw pipeFailure(cause);
    });
    try {
      return { childEnd, stream: openStream(name, direction, this.#helper) };
    } catch (cause) {
      await childEnd.close();
      throw pipeFailure(cause);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.#filling?.catch(() => undefined);
    await Promise.all(this.#ready.splice(0).map((handle) => handle.close()));
  }

  async #next(): Promise<FileHandle> {
    for (;;) {
      if (this.#isClosed) throw new SandboxError("SHUTTING_DOWN", "no further program gets a pipe");
      const handle = this.#ready.shift();
      if (handle === undefined) {
        await this.#fill();
        continue;
      }
      // A failure here comes again when a caller waits for the batch.
      if (this.#ready.length < FEW) this.#fill().catch(() => undefined);
      return handle;
    }
  }

  /** Makes one batch at a time. */
  async #fill(): Promise<void> {
    this.#filling ??= makeBatch((names) => runMkfifo(names, { path: this.#path, helper: this.#helper }))
      .then((made) => void this.#ready.push(...made))
      .finally(() => {
        this.#filling = undefined;
      });
    await this.#filling;
  }
}

function openStream(name: string, direction: "to_child" | "from_child", helper: Helper | undefined): Socket {
  const ownMode = direction === "to_child" ? constants.O_WRONLY : constants.O_RDONLY;
  const fd = openSync(name, ownMode | constants.O_NONBLOCK);
  try {
    if (direction === "to_child") return new Socket({ fd, readable: false, writable: true });
    const onBulky = (): void => {
      widenPipe(fd, helper);
    };
    const onread = readInBlocks(() => stream, onBulky);
    const stream: Socket = new Socket({ fd, readable: true, writable: false, onread });
    return stream;
  } catch (cause) {
    closeSync(fd);
    throw cause;
  }
}

async function makeBatch(make: (names: readonly string[]) => Promise<void>): Promise<readonly FileHandle[]> {
  const directory = await mkdtemp(join(tmpdir(), "turnbox-fifo-")).catch((cause: unknown) => {
    throw pipeFailure(cause);
  });
  const names = Array.from({ length: BATCH }, (_, index) => join(directory, String(index)));
  try {
    await make(names);
    return await openAll(names);
  } finally {
    await removeNames(directory, names);
  }
}

/** Name by name: listing the directory takes a descriptor, which may be the one that is missing. */
async function removeNames(directory: string, names: readonly string[]): Promise<void> {
  await Promise.allSettled(names.map((name) => unlink(name)));
  // What is left behind is an empty directory, and no reason to lose the pipes.
  await rmdir(directory).catch(() => undefined);
}

async function runMkfifo(
  names: readonly string[],
  { path, helper }: { readonly path: string; readonly helper: Helper | undefined },
): Promise<void> {
  const args = ["-m", "600", "--", ...names];
  const order = { argv: ["mkfifo", ...args], env: { PATH: path }, cwd: undefined, outputPath: undefined };
  const byHelper = await helper?.run({ ...order, maxOutputBytes: 0 })?.ended.catch(() => undefined);
  if (byHelper?.status === 0) return;
  let child: ChildProcess;
  try {
    child = spawn("mkfifo", args, {
      env: { PATH: path },
      stdio: "ignore",
      timeout: MKFIFO_DEADLINE_MS,
    });
  } catch (cause) {
    throw startFailure({ command: "mkfifo" }, cause);
  }
  const exit = once(child, "exit");
  // If it does not start, `spawned` throws why.
  exit.catch(() => undefined);
  await spawned(child, { command: "mkfifo" });
  const [exitCode] = (await exit) as [number | null];
  if (exitCode !== 0) throw pipeFailure(new Error(`mkfifo exited with ${String(exitCode)}`));
}

/** Why a pipe for a program could not be made. */
function pipeFailure(cause: unknown): SandboxError {
  return new SandboxError(reasonOfStart(cause) ?? "INTERNAL", "a pipe for a program cannot be made", { cause });
}

/** All of them or, with those closed again that could be opened, the failure. */
async function openAll(names: readonly string[]): Promise<readonly FileHandle[]> {
  const opened = await Promise.allSettled(names.map((name) => open(name, constants.O_RDWR | constants.O_NONBLOCK)));
  const handles = opened.filter((one) => one.status === "fulfilled").map(({ value }) => value);
  const failed = opened.find((one) => one.status === "rejected");
  if (failed === undefined) return handles;
  await Promise.all(handles.map((handle) => handle.close()));
  throw pipeFailure(failed.reason);
}

/** Four times what a pipe holds by itself; with more nothing is faster. */
const WIDE_BYTES = 256 * 1024;

/**
 * Lets a pipe of this process hold more, so that its writer and its reader wait less for each other. If that cannot be done, it
 * stays as it is.
 */
function widenPipe(fd: number, helper: Helper | undefined): void {
  // A number that has been given to another file since then leads to one that is no pipe, or to one that can be wide as well.
  const argv = [PERL, programPath("widen-pipe.pl"), `/proc/${process.pid}/fd/${fd}`, String(WIDE_BYTES)];
  const widening = helper?.run({ argv, env: {}, cwd: undefined, outputPath: undefined, maxOutputBytes: 0 });
  widening?.ended.catch(() => undefined);
}
