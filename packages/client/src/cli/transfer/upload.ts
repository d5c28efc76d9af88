import { randomUUID } from "node:crypto";
import { createReadStream } from "node:fs";
import { stat } from "node:fs/promises";
import { basename, posix, resolve } from "node:path";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type CommandRunner, invalidArgument } from "@turnbox/core";
import type { UploadArchiveRequestSchema } from "@turnbox/protocol/turnbox/host/v1/file_pb";
import type { OpenSandbox } from "../resolve/resolve-sandbox.ts";
import { packDirectory } from "./local-archive.ts";
import { localFailure } from "./local-failure.ts";
import type { ProgressBar } from "./progress-bar.ts";
import { isDirectory, statIfThere } from "./remote-entry.ts";
import { writeFile } from "./write-file.ts";

/** What a copy was. */
export interface Copied {
  readonly source: string;
  readonly destination: string;
  /** Bytes that were sent; of a directory those of its archive. */
  readonly bytes: number;
}

export interface Upload {
  readonly sandbox: OpenSandbox;
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
  let bytes = 0;
  const onSent = (sent: number): void => {
    bytes += sent;
    bar.add(sent);
  };
  if (local.isFile()) {
    bar.expect(local.size);
    const content = readLocal(source);
    const mode = local.mode & PERMISSIONS;
    await writeFile(sandbox, { path: destination, mode, directories: "expect", content, onSent }, { signal });
  } else if (local.isDirectory()) {
    const { host, sessionId } = sandbox;
    const archive = packDirectory({ runner, path: resolve(source), signal });
    await host.files.uploadArchive(parts({ sessionId, path: destination, archive, onSent }), { signal });
  } else throw invalidArgument("source", `${source} is neither a file nor a directory`);
  return { source, destination, bytes };
}

async function targetOf(
  { sandbox, source, destination }: Upload,
  { signal }: { readonly signal: AbortSignal },
): Promise<string> {
  const name = basename(resolve(source));
  const isInto = destination.endsWith("/") || isDirectory(await statIfThere(sandbox, destination, { signal }));
  return isInto ? posix.join(destination, name) : destination;
}

async function* readLocal(path: string): AsyncIterable<Uint8Array> {
  try {
    yield* createReadStream(path) as AsyncIterable<Uint8Array>;
  } catch (cause) {
    throw localFailure(path, cause);
  }
}

interface ArchiveParts {
  readonly sessionId: string;
  readonly path: string;
  readonly archive: AsyncIterable<Uint8Array>;
  readonly onSent: (bytes: number) => void;
}

async function* parts({
  sessionId,
  path,
  archive,
  onSent,
}: ArchiveParts): AsyncIterable<MessageInitShape<typeof UploadArchiveRequestSchema>> {
  yield { part: { case: "header", value: { idempotencyKey: randomUUID(), sessionId, path } } };
  for await (const value of archive) {
    yield { part: { case: "data", value } };
    onSent(value.length);
  }
}
