import { SandboxError } from "@turnbox/core";
import type { FileEntry } from "@turnbox/protocol/turnbox/host/v1/file_pb";
import type { HostCalls } from "../host-call.ts";
import { DEFAULT_TIMEOUT_MS } from "../link/default-timeouts.ts";
import { toWireCount } from "../wire/number.ts";
import type { ReadOptions } from "./sandbox-files.ts";

export interface FileReading {
  readonly path: string;
  /** Given every byte once, in order; the next ones wait for it. */
  readonly onBytes: (bytes: Uint8Array) => Promise<void>;
}

/** Reads a file, or a part of it. A stream that breaks goes on where it was, unless the file is another one by then. */
export async function readFile(
  calls: HostCalls,
  { path, onBytes }: FileReading,
  options: ReadOptions & { readonly timeoutMs: number },
): Promise<void> {
  const { sessionId } = calls;
  const start = toWireCount("offset", options.offset);
  const limit = toWireCount("limitBytes", options.limitBytes);
  let seen: FileEntry | undefined;
  let received = 0n;
  await calls.call({ options, timeoutMs: options.timeoutMs }, async ({ host }, { signal, progress }) => {
    // A limit of 0 means none, so a part that is complete is not asked for again.
    if (limit > 0n && received >= limit) return;
    const question = { sessionId, path, offset: start + received, limitBytes: limit === 0n ? 0n : limit - received };
    for await (const { entry, data } of host.files.readFile(question, { signal })) {
      progress();
      if (entry !== undefined) seen = assertSame(seen ?? entry, entry, path);
      if (data.length === 0) continue;
      received += BigInt(data.length);
      await onBytes(data);
    }
    signal.throwIfAborted();
  });
}

/** The whole of it, in memory. */
export async function readWhole(calls: HostCalls, path: string, options: ReadOptions): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  const onBytes = (bytes: Uint8Array): Promise<void> => {
    pieces.push(bytes);
    return Promise.resolve();
  };
  await readFile(calls, { path, onBytes }, { timeoutMs: DEFAULT_TIMEOUT_MS.transfer, ...options });
  return Buffer.concat(pieces);
}

function assertSame(before: FileEntry, now: FileEntry, path: string): FileEntry {
  const [one, other] = [before, now].map(
    ({ type, sizeBytes, modifiedAt }) =>
      `${String(type)} ${String(sizeBytes)} ${String(modifiedAt?.seconds)}.${String(modifiedAt?.nanos)}`,
  );
  if (one === other) return now;
  throw new SandboxError("FILE_CHANGED", `${path} changed while it was read, and the connection broke meanwhile`, {
    metadata: { path },
  });
}
