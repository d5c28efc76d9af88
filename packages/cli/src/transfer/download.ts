import { randomUUID } from "node:crypto";
import { type FileHandle, mkdir, open, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join, posix, resolve } from "node:path";
import { type FileInfo, type Sandbox, SandboxError } from "@turnbox/client";
import type { CommandRunner } from "@turnbox/core";
import { unpackDirectory } from "./local-archive.ts";
import { localFailure } from "./local-failure.ts";
import type { ProgressBar } from "./progress-bar.ts";
import { statIfThere } from "./remote-entry.ts";
import type { Copied } from "./upload.ts";

export interface Download {
  readonly sandbox: Sandbox;
  /** In the sandbox. */
  readonly source: string;
  /** Here; where a directory is, the copy goes into it under its own name. */
  readonly destination: string;
  readonly bar: ProgressBar;
  readonly runner: CommandRunner;
}

const PERMISSIONS = 0o777;

/** Copies a file or a directory out of a sandbox. A file is there whole or not at all. */
export async function download(order: Download, { signal }: { readonly signal: AbortSignal }): Promise<Copied> {
  const { sandbox, source, bar } = order;
  const entry = await statIfThere(sandbox, source, { signal });
  if (entry === undefined)
    throw new SandboxError("FILE_NOT_FOUND", `there is no ${source} in ${sandbox.id}`, { metadata: { path: source } });
  const destination = await targetOf(order);
  let bytes = 0;
  const onReceived = (received: number): void => {
    bytes += received;
    bar.add(received);
  };
  try {
    const receiving = { ...order, destination, entry, onReceived };
    await (entry.kind === "directory" ? downloadDirectory : downloadFile)(receiving, { signal });
  } catch (cause) {
    throw localFailure(destination, cause);
  }
  return { source, destination, bytes };
}

async function targetOf({ source, destination }: Download): Promise<string> {
  const there = await stat(destination).catch(() => undefined);
  const isInto = there?.isDirectory() === true || destination.endsWith("/");
  const name = posix.basename(posix.resolve("/workspace", source));
  return isInto ? join(destination, name) : destination;
}

interface Receiving extends Download {
  readonly entry: FileInfo;
  readonly onReceived: (bytes: number) => void;
}

async function downloadDirectory(
  { sandbox, source, destination, runner, onReceived }: Receiving,
  { signal }: { readonly signal: AbortSignal },
): Promise<void> {
  await mkdir(destination, { recursive: true });
  const pieces = counted(sandbox.files.download(source, { signal }), onReceived);
  await unpackDirectory(pieces, { runner, path: resolve(destination), signal });
}

async function downloadFile(
  { sandbox, source, destination, entry, bar, onReceived }: Receiving,
  { signal }: { readonly signal: AbortSignal },
): Promise<void> {
  const draft = join(dirname(destination), `.${basename(destination)}.${randomUUID()}.part`);
  bar.expect(entry.sizeBytes);
  let file: FileHandle | undefined;
  try {
    file = await open(draft, "wx", entry.mode & PERMISSIONS);
    for await (const bytes of counted(sandbox.files.readStream(source, { signal }), onReceived))
      await file.writeFile(bytes);
    await file.close();
    await rename(draft, destination);
  } catch (thrown) {
    await file?.close().catch(() => undefined);
    await rm(draft, { force: true });
    throw thrown;
  }
}

async function* counted(
  pieces: AsyncIterable<Uint8Array>,
  onReceived: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  for await (const bytes of pieces) {
    yield bytes;
    onReceived(bytes.length);
  }
}
