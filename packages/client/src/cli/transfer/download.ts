import { randomUUID } from "node:crypto";
import { type FileHandle, mkdir, open, rename, rm, stat } from "node:fs/promises";
import { basename, dirname, join, posix, resolve } from "node:path";
import type { CommandRunner } from "@turnbox/core";
import type { OpenSandbox } from "../resolve/resolve-sandbox.ts";
import { unpackDirectory } from "./local-archive.ts";
import { localFailure } from "./local-failure.ts";
import type { ProgressBar } from "./progress-bar.ts";
import { isDirectory, statThere } from "./remote-entry.ts";
import type { Copied } from "./upload.ts";

export interface Download {
  readonly sandbox: OpenSandbox;
  /** In the sandbox. */
  readonly source: string;
  /** Here; where a directory is, the copy goes into it under its own name. */
  readonly destination: string;
  readonly bar: ProgressBar;
  readonly runner: CommandRunner;
}

const PERMISSIONS = 0o777;
const USUAL_MODE = 0o644;

/** Copies a file or a directory out of a sandbox. A file is there whole or not at all. */
export async function download(order: Download, { signal }: { readonly signal: AbortSignal }): Promise<Copied> {
  const { sandbox, source, bar } = order;
  const entry = await statThere(sandbox, source, { signal });
  const destination = await targetOf(order);
  let bytes = 0;
  const onReceived = (received: number): void => {
    bytes += received;
    bar.add(received);
  };
  try {
    if (isDirectory(entry)) await downloadDirectory({ ...order, destination, onReceived }, { signal });
    else await downloadFile({ ...order, destination, onReceived }, { signal });
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

type Receiving = Download & { readonly onReceived: (bytes: number) => void };

async function downloadDirectory(
  { sandbox, source, destination, runner, onReceived }: Receiving,
  { signal }: { readonly signal: AbortSignal },
): Promise<void> {
  const { host, sessionId } = sandbox;
  await mkdir(destination, { recursive: true });
  const pieces = host.files.downloadArchive({ sessionId, path: source }, { signal });
  await unpackDirectory(dataOf(pieces, onReceived), { runner, path: resolve(destination), signal });
}

async function downloadFile(
  { sandbox, source, destination, bar, onReceived }: Receiving,
  { signal }: { readonly signal: AbortSignal },
): Promise<void> {
  const { host, sessionId } = sandbox;
  const draft = join(dirname(destination), `.${basename(destination)}.${randomUUID()}.part`);
  let file: FileHandle | undefined;
  try {
    for await (const { entry, data } of host.files.readFile({ sessionId, path: source }, { signal })) {
      if (entry !== undefined) bar.expect(Number(entry.sizeBytes));
      file ??= await open(draft, "wx", (entry?.mode ?? USUAL_MODE) & PERMISSIONS);
      await file.writeFile(data);
      onReceived(data.length);
    }
    file ??= await open(draft, "wx", USUAL_MODE);
    await file.close();
    await rename(draft, destination);
  } catch (thrown) {
    await file?.close().catch(() => undefined);
    await rm(draft, { force: true });
    throw thrown;
  }
}

async function* dataOf(
  pieces: AsyncIterable<{ readonly data: Uint8Array }>,
  onReceived: (bytes: number) => void,
): AsyncGenerator<Uint8Array> {
  for await (const { data } of pieces) {
    yield data;
    onReceived(data.length);
  }
}
