import { randomUUID } from "node:crypto";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { FileEntry, WriteFileRequestSchema } from "@turnbox/protocol/turnbox/host/v1/file_pb";
import { SandboxError } from "@turnbox/core";
import type { OpenSandbox } from "../resolve/resolve-sandbox.ts";

const PIECE_BYTES = 256 * 1024;

export interface FileToWrite {
  readonly path: string;
  /** Permission bits; 0 leaves them to the host. */
  readonly mode: number;
  readonly directories: "make" | "expect";
  readonly content: AsyncIterable<string | Uint8Array>;
  readonly onSent?: (bytes: number) => void;
}

/** Writes a file in the sandbox whole: the old content is there until all of the new one is. */
export async function writeFile(
  { host, sessionId }: OpenSandbox,
  file: FileToWrite,
  { signal }: { readonly signal: AbortSignal },
): Promise<FileEntry> {
  const { entry } = await host.files.writeFile(parts(sessionId, file), { signal });
  if (entry !== undefined) return entry;
  throw new SandboxError("INTERNAL", "the host wrote a file and did not describe it", {
    metadata: { path: file.path },
  });
}

async function* parts(
  sessionId: string,
  { path, mode, directories, content, onSent }: FileToWrite,
): AsyncIterable<MessageInitShape<typeof WriteFileRequestSchema>> {
  const createDirectories = directories === "make";
  yield { part: { case: "header", value: { idempotencyKey: randomUUID(), sessionId, path, mode, createDirectories } } };
  for await (const chunk of content) {
    const bytes = typeof chunk === "string" ? Buffer.from(chunk) : chunk;
    for (let at = 0; at < bytes.length; at += PIECE_BYTES) {
      const value = bytes.subarray(at, at + PIECE_BYTES);
      yield { part: { case: "data", value } };
      onSent?.(value.length);
    }
  }
}
