import { hasReason, SandboxError } from "@turnbox/core";
import { type FileEntry, FileType } from "@turnbox/protocol/turnbox/host/v1/file_pb";
import { CALL_MS } from "../deadline.ts";
import type { OpenSandbox } from "../resolve/resolve-sandbox.ts";

/** What is at a path in the sandbox, or undefined. */
export async function statIfThere(
  { host, sessionId }: OpenSandbox,
  path: string,
  { signal }: { readonly signal: AbortSignal },
): Promise<FileEntry | undefined> {
  try {
    const { entry } = await host.files.stat({ sessionId, path }, { signal, timeoutMs: CALL_MS.read });
    return entry;
  } catch (thrown) {
    if (hasReason(thrown, "FILE_NOT_FOUND")) return undefined;
    throw thrown;
  }
}

/** What is at a path in the sandbox; nothing is `FILE_NOT_FOUND`. */
export async function statThere(
  sandbox: OpenSandbox,
  path: string,
  options: { readonly signal: AbortSignal },
): Promise<FileEntry> {
  const entry = await statIfThere(sandbox, path, options);
  if (entry !== undefined) return entry;
  throw new SandboxError("FILE_NOT_FOUND", `there is no ${path} in ${sandbox.sandboxId}`, { metadata: { path } });
}

export const isDirectory = (entry: FileEntry | undefined): boolean => entry?.type === FileType.DIRECTORY;
