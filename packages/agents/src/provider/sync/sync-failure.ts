import { SandboxError } from "@turnbox/client";
import { hasErrno } from "@turnbox/client/internal";

/** What a failure of this machine's files is called; all else is what it was. */
export function syncFailure(thrown: unknown): SandboxError {
  const failure = (reason: "FILE_NOT_FOUND" | "PERMISSION_DENIED" | "QUOTA_EXCEEDED", message: string): SandboxError =>
    new SandboxError(reason, message, { cause: thrown });
  if (thrown instanceof SandboxError) return thrown;
  if (hasErrno(thrown, "ENOSPC", "EDQUOT")) return failure("QUOTA_EXCEEDED", "there is no room for the files here");
  if (hasErrno(thrown, "ENOENT", "ENOTDIR")) return failure("FILE_NOT_FOUND", "the workspace is no directory here");
  if (hasErrno(thrown, "EACCES", "EPERM", "EROFS")) {
    return failure("PERMISSION_DENIED", "the workspace may not be used by this user");
  }
  return SandboxError.from(thrown);
}

/** The bytes of a source whose own failure counts more than what a reader makes of it. */
export interface WatchedSource {
  readonly bytes: AsyncIterable<Uint8Array>;
  /** Does the work that reads, and fails with the source's failure if there is one. */
  during<R>(work: () => Promise<R>): Promise<R>;
}

export function watchSource(source: AsyncIterable<Uint8Array>): WatchedSource {
  let failure: SandboxError | undefined;
  async function* watched(): AsyncGenerator<Uint8Array> {
    try {
      yield* source;
    } catch (thrown) {
      failure = syncFailure(thrown);
      throw failure;
    }
  }
  return {
    bytes: watched(),
    during: async (work) => {
      try {
        return await work();
      } catch (thrown) {
        throw failure ?? syncFailure(thrown);
      }
    },
  };
}
