import { spawn } from "node:child_process";
import { lstat, mkdir, open, readlink, rm, writeFile } from "node:fs/promises";
import { constants } from "node:os";
import { dirname } from "node:path";
import {
  type FileInfo,
  type LaunchOptions,
  type ProcessInfo,
  SandboxError,
  type SandboxProcess,
  type Signal,
} from "@turnbox/client";
import { hasErrno } from "@turnbox/client/internal";
import type { LaunchingSandbox } from "./turnbox-launcher.ts";
import type { ToolSandbox } from "../tool-host/turnbox-tool-host.ts";

/** A sandbox without walls, for tests: its files are this machine's and its processes are children of the test. */
export function createDirectorySandbox(): LaunchingSandbox & ToolSandbox & { readonly launched: readonly string[] } {
  const launched: string[] = [];
  return {
    launched,
    files: { stat, read, readStream, write, remove: async (path) => await rm(path, { force: true }) },
    processes: {
      launch: async (binary, options = {}) => {
        launched.push(binary);
        return launch(binary, options);
      },
    },
  };
}

function launch(binary: string, { args = [], env = {}, cwd = "/" }: LaunchOptions): SandboxProcess {
  const child = spawn(binary, [...args], { cwd, env: { PATH: "/usr/bin:/bin", ...env }, detached: true });
  const journal: Buffer[] = [];
  let wake = Promise.withResolvers<void>();
  const changed = (): void => {
    wake.resolve();
    wake = Promise.withResolvers();
  };
  for (const stream of [child.stdout, child.stderr]) {
    stream.on("data", (data: Buffer) => {
      journal.push(data);
      changed();
    });
  }
  child.stdin.on("error", () => undefined);
  const end: { info?: ProcessInfo } = {};
  const id = String(child.pid);
  const info = (more: Partial<ProcessInfo> = {}): ProcessInfo => ({ ...RUNNING, id, binary, args, ...more });
  const wait = new Promise<ProcessInfo>((resolve) => {
    child.once("error", () => child.emit("close", 127, null));
    child.once("close", (exitCode: number | null, name: NodeJS.Signals | null) => {
      const exitSignal = name === null ? undefined : constants.signals[name];
      const exitReason = name === null ? "exited" : "signaled";
      end.info = info({ state: "exited", exitCode: exitCode ?? undefined, exitSignal, exitReason });
      resolve(end.info);
      changed();
    });
  });
  const output = async function* () {
    for (let at = 0, offset = 0; ; ) {
      const data = journal[at];
      if (data === undefined) {
        if (end.info !== undefined) return;
        await wake.promise;
        continue;
      }
      yield { data, offset, droppedBytes: 0 };
      offset += data.length;
      at += 1;
    }
  };
  const unused = (what: string) => () => {
    throw new Error(`the launcher ${what}`);
  };
  return {
    id,
    known: info(),
    read: unused("reads by callback"),
    resize: unused("resizes"),
    status: async () => end.info ?? info(),
    ready: async () => end.info ?? info(),
    output,
    lines: unused("reads lines"),
    write: async (data) => void child.stdin.write(data),
    closeInput: async () => void child.stdin.end(),
    kill: async (signal: Signal = "SIGTERM") => {
      if (end.info !== undefined || child.pid === undefined) return info();
      process.kill(signal === "SIGKILL" ? -child.pid : child.pid, signal);
      return signal === "SIGKILL" ? await wait : info();
    },
    wait: () => wait,
  };
}

const RUNNING: ProcessInfo = {
  id: "",
  binary: "",
  args: [],
  state: "running",
  address: undefined,
  exitCode: undefined,
  exitSignal: undefined,
  exitReason: undefined,
  startedAt: new Date(0),
  exitedAt: undefined,
  outputBytes: 0,
  inputBytes: 0,
  generation: 1,
  terminal: false,
};

async function stat(path: string): Promise<FileInfo> {
  const entry = await lstat(path).catch((thrown: unknown) => missing(thrown, path));
  const kind = entry.isSymbolicLink() ? "symlink" : entry.isDirectory() ? "directory" : "file";
  const { size: sizeBytes, mode, uid, gid, mtime: modifiedAt } = entry;
  const linkTarget = kind === "symlink" ? await readlink(path) : undefined;
  return { name: path, path, kind, sizeBytes, mode, uid, gid, modifiedAt, linkTarget };
}

async function read(path: string, { offset = 0, limitBytes = 1 << 24 } = {}): Promise<Uint8Array> {
  await using file = await open(path).catch((thrown: unknown) => missing(thrown, path));
  const { buffer, bytesRead } = await file.read(Buffer.alloc(limitBytes), 0, limitBytes, offset);
  return buffer.subarray(0, bytesRead);
}

/** In pieces that lines and characters cross. */
async function* readStream(path: string): AsyncGenerator<Uint8Array> {
  const data = await read(path);
  for (let at = 0; at < data.length; at += 7) yield data.subarray(at, at + 7);
}

async function write(path: string, content: unknown): Promise<FileInfo> {
  await mkdir(dirname(path), { recursive: true });
  await writeFile(path, content as string);
  return await stat(path);
}

function missing(thrown: unknown, path: string): never {
  if (hasErrno(thrown, "ENOENT") || hasErrno(thrown, "ENOTDIR"))
    throw new SandboxError("FILE_NOT_FOUND", `there is no ${path}`);
  throw thrown;
}
