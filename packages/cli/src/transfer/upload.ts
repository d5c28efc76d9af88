import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { basename, posix, resolve } from "node:path";
import { DEFAULT_TIMEOUT_MS, type Sandbox } from "@turnbox/client";
import { type CommandRunner, invalidArgument } from "@turnbox/core";
import { packDirectory } from "./local-archive.ts";
import { localFailure } from "./local-failure.ts";
import type { ProgressBar } from "./progress-bar.ts";
import { statIfThere } from "./remote-entry.ts";

/** What a copy was. */
export interface Copied {
  readonly source: string;
  readonly destination: string;
  /** Bytes that were sent; of a directory those of its archive. */
  readonly bytes: number;
}

export interface Upload {
  readonly sandbox: Sandbox;
  /** Here. */
  readonly source: string;
  /** In the sandbox; where a directory is, the copy goes into it under its own name. */
  readonly destination: string;
  readonly bar: ProgressBar;
  readonly runner: CommandRunner;
}

const PERMISSIONS = 0o777;

/** Copies a file or a directory into a sandbox. */
export async function upload(order: Upload, { signal }: { readonly signal: AbortSignal }): Promise<Copied> {
  const { sandbox, source, bar, runner } = order;
  const local = await stat(source).catch((cause: unknown) => {
    throw localFailure(source, cause);
  });
  const destination = await targetOf(order, { signal });
  const call = { signal, timeoutMs: DEFAULT_TIMEOUT_MS.stream };
  let bytes = 0;
  const onSent = (sent: number): void => {
    bytes += sent;
    bar.add(sent);
  };
  if (local.isFile()) {
    bar.expect(local.size);
    const mode = local.mode & PERMISSIONS;
    const content = counted(readLocal(source), onSent);
    await sandbox.files.write(destination, content, { mode, createDirectories: false, ...call });
  } else if (local.isDirectory()) {
    const archive = packDirectory({ runner, path: resolve(source), signal });
    await sandbox.files.upload(destination, counted(archive, onSent), call);
  } else throw invalidArgument("source", `${source} is neither a file nor a directory`);
  return { source, destination, bytes };
}

async function targetOf(
  { sandbox, source, destination }: Upload,
  { signal }: { readonly signal: AbortSignal },
): Promise<string> {
  const name = basename(resolve(source));
  const isInto =
    destination.endsWith("/") || (await statIfThere(sandbox, destination, { signal }))?.kind === "directory";
  return isInto ? posix.join(destination, name) : destination;
}

async function* readLocal(path: string): AsyncIterable<Uint8Array> {
  try {
    yield* createReadStream(path) as AsyncIterable<Uint8Array>;
  } catch (cause) {
    throw localFailure(path, cause);
  }
}

/** Counts what was taken. */
async function* counted(pieces: AsyncIterable<Uint8Array>, onSent: (bytes: number) => void): AsyncIterable<Uint8Array> {
  for await (const bytes of pieces) {
    yield bytes;
    onSent(bytes.length);
  }
}
