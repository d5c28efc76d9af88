import { hasErrno, SandboxError } from "@turnbox/core";

/** What a local path's failure is called. */
export function localFailure(path: string, cause: unknown): unknown {
  const metadata = { path };
  if (hasErrno(cause, "ENOENT", "ENOTDIR"))
    return new SandboxError("FILE_NOT_FOUND", `there is no ${path} here`, { cause, metadata });
  if (hasErrno(cause, "EACCES", "EPERM", "EROFS"))
    return new SandboxError("PERMISSION_DENIED", `${path} may not be used by this user`, { cause, metadata });
  return cause;
}
