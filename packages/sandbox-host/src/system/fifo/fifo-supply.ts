import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, constants, existsSync, openSync, rmdirSync, unlinkSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
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
/** A filesystem in memory makes and removes names a hundred times faster than one on a disk, and they last a moment. */
const MEMORY_DIRECTORY = "/dev/shm";

/** A descriptor of a pipe, closed by its disposal. */
export class PipeEnd implements Disposable {
  readonly fd: number;
  #isOpen = true;

  constructor(fd: number) {
    this.fd = fd;
  }

  [Symbol.dispose](): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    closeSync(this.fd);
  }
}

/** One direction: an end that the child is given, and a stream for this process. */
export interface Fifo {
  readonly childEnd: PipeEnd;
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
 * its two ends (by `/proc/self/fd`) cannot block, and neither end shares its flags with the other. So all of it is done at
 * once: a turn through the threads of the I/O pool costs ten times as much, and a command takes nine of them.
 *
 * Disposal closes those in store, and none is taken afterwards. One that was taken belongs to its caller.
 */
export class FifoSupply implements AsyncDisposable {
  readonly #path: string;
  readonly #helper: Helper | undefined;
  readonly #ready: PipeEnd[] = [];
  #filling: Promise<void> | undefined;
  #isClosed = false;

  constructor({ path = SYSTEM_PATH, helper }: FifoSupplyOptions = {}) {
    this.#path = path;
    this.#helper = helper;
  }

  /** Throws `OVERLOADED` if the system has no descriptor or process left, and holds nothing then. */
  async take(direction: "to_child" | "from_child"): Promise<Fifo> {
    using both = await this.#next();
    const name = `/proc/self/fd/${both.fd}`;
    const ofChild = direction === "to_child" ? constants.O_RDONLY : constants.O_WRONLY;
    using opened = new DisposableStack();
    try {
      const childEnd = opened.use(new PipeEnd(openSync(name, ofChild)));
      const stream = openStream(name, direction, this.#helper);
      opened.move();
      return { childEnd, stream };
    } catch (cause) {
      throw pipeFailure(cause);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    await this.#filling?.catch(() => undefined);
    for (const end of this.#ready.splice(0)) end[Symbol.dispose]();
  }

  async #next(): Promise<PipeEnd> {
    for (;;) {
      if (this.#isClosed) throw new SandboxError("SHUTTING_DOWN", "no further program gets a pipe");
      const end = this.#ready.shift();
      if (end === undefined) {
        await this.#fill();
        continue;
      }
      // A failure here comes again when a caller waits for the batch.
      if (this.#ready.length < FEW) this.#fill().catch(() => undefined);
      return end;
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

async function makeBatch(make: (names: readonly string[]) => Promise<void>): Promise<readonly PipeEnd[]> {
  const parent = existsSync(MEMORY_DIRECTORY) ? MEMORY_DIRECTORY : tmpdir();
  const directory = await mkdtemp(join(parent, "turnbox-fifo-")).catch((cause: unknown) => {
    throw pipeFailure(cause);
  });
  const names = Array.from({ length: BATCH }, (_, index) => join(directory, String(index)));
  try {
    await make(names);
    return openAll(names);
  } finally {
    removeNames(directory, names);
  }
}

/** Name by name: listing the directory takes a descriptor, which may be the one that is missing. */
function removeNames(directory: string, names: readonly string[]): void {
  // What is left behind are names in a directory, and no reason to lose the pipes.
  for (const name of names) attempt(() => unlinkSync(name));
  attempt(() => rmdirSync(directory));
}

function attempt(work: () => void): void {
  try {
    work();
  } catch {
    // Nothing depends on it.
  }
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
function openAll(names: readonly string[]): readonly PipeEnd[] {
  using opened = new DisposableStack();
  try {
    const ends = names.map((name) => opened.use(new PipeEnd(openSync(name, constants.O_RDWR | constants.O_NONBLOCK))));
    opened.move();
    return ends;
  } catch (cause) {
    throw pipeFailure(cause);
  }
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
