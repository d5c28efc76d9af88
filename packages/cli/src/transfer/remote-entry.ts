import { type FileInfo, hasReason, type Sandbox } from "@turnbox/client";

/** What is at a path in the sandbox, or undefined. */
export async function statIfThere(
  sandbox: Sandbox,
  path: string,
  { signal }: { readonly signal: AbortSignal },
): Promise<FileInfo | undefined> {
  try {
    return await sandbox.files.stat(path, { signal });
  } catch (thrown) {
    if (hasReason(thrown, "FILE_NOT_FOUND")) return undefined;
    throw thrown;
  }
}
