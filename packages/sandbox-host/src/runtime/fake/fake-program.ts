import { appendFileSync } from "node:fs";
import { appendFile, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Readable, Writable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { setTimeout as delay } from "node:timers/promises";

/** What a program of the fake runtime is given. */
export interface FakeProcess {
  readonly argv: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Absolute path inside. */
  readonly cwd: string;
  readonly stdin: Readable;
  readonly stdout: Writable;
  readonly stderr: Writable;
  /** Aborted when the process is killed: whatever the program does then is no longer seen. */
  readonly signal: AbortSignal;
  /** The path on the host of a path inside, absolute or below the working directory. */
  hostPath(path: string): string;
  /** Waits while the container is paused. A program that does much calls it between its steps. */
  breathe(): Promise<void>;
}

/** Runs in this process and returns its exit code. */
export type FakeProgram = (process: FakeProcess) => Promise<number>;

/** Small programs for tests, by the name they are called by. */
export const FAKE_PROGRAMS: Readonly<Record<string, FakeProgram>> = {
  /** echo TEXT... */
  echo: (process) => {
    process.stdout.write(`${process.argv.slice(1).join(" ")}\n`);
    return Promise.resolve(0);
  },
  /** print STDOUT STDERR CODE */
  print: ({ argv: [, stdout = "", stderr = "", code = "0"], ...process }) => {
    process.stdout.write(stdout);
    process.stderr.write(stderr);
    return Promise.resolve(Number(code));
  },
  /** exit CODE */
  exit: ({ argv: [, code = "0"] }) => Promise.resolve(Number(code)),
  /** cat [PATH] */
  cat: async (process) => {
    const [, path] = process.argv;
    if (path === undefined) await pipeline(process.stdin, process.stdout, { end: false });
    else process.stdout.write(await readFile(process.hostPath(path)));
    return 0;
  },
  /** write PATH TEXT */
  write: async (process) => {
    const [, path = "", text = ""] = process.argv;
    await writeFile(process.hostPath(path), text);
    return 0;
  },
  /** append PATH TEXT [hang]: adds a line to a file, and then runs on until it is killed, if `hang` is given. */
  append: async (process) => {
    const [, path = "", text = "", then] = process.argv;
    await appendFile(process.hostPath(path), `${text}\n`);
    if (then === "hang" && !process.signal.aborted)
      await new Promise((resolve) => {
        process.signal.addEventListener("abort", resolve, { once: true });
      });
    return 0;
  },
  /** flood BYTES: writes so many bytes, at the pace of their reader. */
  flood: async (process) => {
    const total = Number(process.argv[1] ?? 0);
    for (let done = 0; done < total && !process.signal.aborted; ) {
      const data = Buffer.alloc(Math.min(65_536, total - done), done % 251);
      done += data.length;
      if (!process.stdout.write(data)) await new Promise((resolve) => process.stdout.once("drain", resolve));
    }
    return 0;
  },
  env: (process) => {
    for (const [name, value] of Object.entries(process.env)) process.stdout.write(`${name}=${value}\n`);
    return Promise.resolve(0);
  },
  pwd: (process) => {
    process.stdout.write(`${process.cwd}\n`);
    return Promise.resolve(0);
  },
  /** Runs until it is killed. */
  sleep: async ({ signal }) => {
    await new Promise((resolve) => {
      signal.addEventListener("abort", resolve, { once: true });
    });
    return 0;
  },
  /** count PATH: lets a file grow until it is killed. */
  count: async (process) => {
    const isKilled = (): boolean => process.signal.aborted;
    while (!isKilled()) {
      await process.breathe();
      // At once: a process that is killed writes nothing more.
      if (!isKilled()) appendFileSync(process.hostPath(process.argv[1] ?? ""), ".");
      await delay(5);
    }
    return 0;
  },
};

export function toHostPath(rootPath: string, cwd: string, path: string): string {
  return join(rootPath, join("/", path.startsWith("/") ? path : join(cwd, path)));
}
