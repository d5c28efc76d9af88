import { randomUUID } from "node:crypto";
import type { HostCalls } from "../host-call.ts";
import { DEFAULT_TIMEOUT_MS } from "../link/default-timeouts.ts";
import { NotRepeatable } from "../link/sandbox-link.ts";
import { toWireUint32 } from "../wire/number.ts";
import type { FileContent, FileInfo, SandboxFiles, WriteOptions } from "./sandbox-files.ts";
import { toFileInfo } from "./to-file-info.ts";

const PIECE_BYTES = 256 * 1024;

type Piece = { readonly part: { readonly case: "data"; readonly value: Uint8Array } };

/** Bytes for the wire. What comes from an iterable can be sent once; text and bytes as often as need be. */
interface Body {
  pieces(): AsyncIterable<Piece>;
  /** Runs an attempt; one whose bytes are gone is the last. */
  attempt<T>(send: () => Promise<T>): Promise<T>;
}

function createBody(content: FileContent): Body {
  let state: "whole" | "begun" = "whole";
  const source = typeof content === "string" ? Buffer.from(content) : content;
  return {
    async *pieces() {
      if (source instanceof Uint8Array) {
        yield* cut(source);
        return;
      }
      state = "begun";
      for await (const bytes of source) yield* cut(bytes);
    },
    attempt: async (send) => {
      try {
        return await send();
      } catch (cause) {
        throw state === "begun" ? new NotRepeatable("the content is gone", { cause }) : cause;
      }
    },
  };
}

function* cut(bytes: Uint8Array): Iterable<Piece> {
  for (let at = 0; at < bytes.length; at += PIECE_BYTES)
    yield { part: { case: "data", value: bytes.subarray(at, at + PIECE_BYTES) } };
}

export interface FileWriting {
  readonly path: string;
  readonly content: FileContent;
}

/** Writes a file whole: the old content is there until all of the new one is. */
export async function writeFile(
  calls: HostCalls,
  { path, content }: FileWriting,
  options: WriteOptions,
): Promise<FileInfo> {
  const { sessionId } = calls;
  const { idempotencyKey = randomUUID(), mode = 0, createDirectories = true } = options;
  const header = { idempotencyKey, sessionId, path, mode: toWireUint32("mode", mode), createDirectories };
  const body = createBody(content);
  const parts = async function* () {
    yield { part: { case: "header" as const, value: header } };
    yield* body.pieces();
  };
  const { entry } = await calls.call({ options, timeoutMs: DEFAULT_TIMEOUT_MS.transfer }, ({ host }, { signal }) =>
    body.attempt(() => host.files.writeFile(parts(), { signal })),
  );
  return toFileInfo(entry);
}

export function createUpload(calls: HostCalls): SandboxFiles["upload"] {
  const { sessionId } = calls;
  return async (path, archive, options = {}) => {
    const { idempotencyKey = randomUUID() } = options;
    const body = createBody(archive);
    const parts = async function* () {
      yield { part: { case: "header" as const, value: { idempotencyKey, sessionId, path } } };
      yield* body.pieces();
    };
    const { entries, bytes } = await calls.call(
      { options, timeoutMs: DEFAULT_TIMEOUT_MS.transfer },
      ({ host }, { signal }) => body.attempt(() => host.files.uploadArchive(parts(), { signal })),
    );
    return { entries, bytes: Number(bytes) };
  };
}
