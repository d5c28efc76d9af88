import { constants } from "node:fs";
import { type FileHandle, lstat, mkdir, open, readlink } from "node:fs/promises";
import { dirname } from "node:path";
import { Readable } from "node:stream";
import { type Clock, SandboxError } from "@turnbox/client";
import { errnoOf, hasErrno, systemClock } from "@turnbox/client/internal";
import { startLocalProcess } from "../launch/local-process.ts";
import { createToolHost, type ToolHostOptions, type ToolTarget } from "./create-tool-host.ts";
import type { StartCommand } from "./terminals.ts";
import type { ToolHost } from "./tool-host.ts";

/** Opening a FIFO does not wait, and a link that was put at the end meanwhile is not followed. */
const CAREFUL = constants.O_NOFOLLOW | constants.O_NONBLOCK;
const CREATE = constants.O_WRONLY | constants.O_CREAT;

/**
 * A tool host of this machine's own files and commands. Paths are kept inside the roots, commands are not kept in at all:
 * what an agent starts runs as this user.
 */
export function createLocalToolHost({
  clock = systemClock,
  ...options
}: ToolHostOptions & { readonly clock?: Clock }): ToolHost {
  const startCommand: StartCommand = async (spec, { signal }) => {
    const running = await startLocalProcess(spec, { clock, signal });
    const { child, closed } = running;
    child.stdin.end();
    return {
      output: bothOutputs([child.stdout, child.stderr]),
      exit: closed.then(({ exitCode, signal: name }) => ({ exitCode, signal: name })),
      kill: async () => {
        running.kill("SIGKILL");
        await closed;
      },
    };
  };
  const target: ToolTarget = {
    readLink: async (path) => {
      const entry = await lstat(path).catch((thrown: unknown) => nothingThere(thrown, path));
      return entry?.isSymbolicLink() === true ? await readlink(path) : undefined;
    },
    readFile,
    writeFile: async (path, content) => {
      await mkdir(dirname(path), { recursive: true }).catch((thrown: unknown) => fail(thrown, path));
      await using file = await openFile(path, CREATE);
      await file.truncate(0);
      await file.writeFile(content);
    },
    startCommand,
  };
  return createToolHost(target, options);
}

async function* readFile(path: string): AsyncGenerator<Uint8Array> {
  await using file = await openFile(path, constants.O_RDONLY);
  const stream = file.createReadStream({ autoClose: false });
  for await (const data of stream) yield data as Buffer;
}

async function openFile(path: string, flags: number): Promise<FileHandle> {
  const file = await open(path, flags | CAREFUL, 0o666).catch((thrown: unknown) => fail(thrown, path));
  if ((await file.stat()).isFile()) return file;
  await file.close();
  throw new SandboxError("PATH_REFUSED", `${path} is no regular file`, { metadata: { path } });
}

/** Both streams in the order in which they are read. */
async function* bothOutputs(
  streams: readonly Readable[],
): AsyncGenerator<{ readonly data: Uint8Array; readonly droppedBytes: number }> {
  const queue: Buffer[] = [];
  let open = streams.length;
  let wake = (): void => undefined;
  for (const stream of streams) {
    stream.on("data", (data: Buffer) => {
      queue.push(data);
      wake();
    });
    stream.once("close", () => {
      open -= 1;
      wake();
    });
  }
  while (open > 0 || queue.length > 0) {
    const data = queue.shift();
    if (data !== undefined) yield { data, droppedBytes: 0 };
    else await new Promise<void>((resolve) => (wake = resolve));
  }
}

function nothingThere(thrown: unknown, path: string): undefined {
  if (hasErrno(thrown, "ENOENT") || hasErrno(thrown, "ENOTDIR")) return undefined;
  return fail(thrown, path);
}

function fail(cause: unknown, path: string): never {
  const errno = errnoOf(cause) ?? "";
  const options = { cause, metadata: { path, errno } };
  if (errno === "ENOENT") throw new SandboxError("FILE_NOT_FOUND", `there is no ${path}`, options);
  if (["ENOSPC", "EDQUOT"].includes(errno)) throw new SandboxError("QUOTA_EXCEEDED", `no room for ${path}`, options);
  throw new SandboxError("PATH_REFUSED", `${path} cannot be used: ${errno}`, options);
}
