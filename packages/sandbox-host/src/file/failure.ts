import type { Admitted, Reason } from "@turnbox/core";

/** Why an operation on files ended without a result, in a file worker. The service makes a `SandboxError` of it. */
export class FileFailure extends Error {
  override readonly name = "FileFailure";
  readonly reason: Reason;
  readonly metadata: Readonly<Record<string, string>>;
  /** Whether files were changed; undefined leaves it to the reason. */
  readonly admitted: Admitted | undefined;

  constructor(reason: Reason, message: string, metadata: Readonly<Record<string, string>> = {}, admitted?: Admitted) {
    super(message);
    this.reason = reason;
    this.metadata = metadata;
    this.admitted = admitted;
  }

  /** The same failure of an operation that had changed files before. */
  afterChanges(): FileFailure {
    return new FileFailure(this.reason, this.message, this.metadata, "unknown");
  }
}

/** A refusal of one field of the request. */
export function invalidField(field: string, rule: string): FileFailure {
  return new FileFailure("INVALID_ARGUMENT", `${field}: ${rule}`, { field, rule });
}

export function notFound(path: string, why = "nothing is there"): FileFailure {
  return new FileFailure("FILE_NOT_FOUND", `${JSON.stringify(path)}: ${why}`, { path });
}

export function refused(path: string, why: string): FileFailure {
  return new FileFailure("PATH_REFUSED", `${JSON.stringify(path)}: ${why}`, { path });
}

/** What errors of the system mean to a caller. Messages of the system are not passed on: they contain paths of this machine. */
const ERRNO: Readonly<Record<string, readonly [Reason, string]>> = {
  ENOENT: ["FILE_NOT_FOUND", "nothing is there"],
  ENOTDIR: ["FILE_NOT_FOUND", "a part of the path is no directory"],
  ELOOP: ["PATH_REFUSED", "it changes while it is looked at"],
  ENXIO: ["PATH_REFUSED", "it is no regular file"],
  ENODEV: ["PATH_REFUSED", "it is no regular file"],
  EACCES: ["PATH_REFUSED", "the system does not allow it"],
  EPERM: ["PATH_REFUSED", "the system does not allow it"],
  EROFS: ["PATH_REFUSED", "it is read-only"],
  ETXTBSY: ["PATH_REFUSED", "it is being executed"],
  EBUSY: ["PATH_REFUSED", "it is in use"],
  EXDEV: ["PATH_REFUSED", "it leads to another filesystem"],
  EEXIST: ["INVALID_ARGUMENT", "something is there already"],
  ENOTEMPTY: ["INVALID_ARGUMENT", "the directory is not empty"],
  EISDIR: ["INVALID_ARGUMENT", "it is a directory"],
  EINVAL: ["INVALID_ARGUMENT", "the system takes no such name or value"],
  ENAMETOOLONG: ["INVALID_ARGUMENT", "the name is too long"],
  EFBIG: ["QUOTA_EXCEEDED", "the file would be too large"],
  ENOSPC: ["QUOTA_EXCEEDED", "the session has no space left"],
  EDQUOT: ["QUOTA_EXCEEDED", "the session has no space left"],
  EMFILE: ["OVERLOADED", "too many files are open"],
  ENFILE: ["OVERLOADED", "too many files are open"],
  EIO: ["STORAGE_UNAVAILABLE", "the storage does not answer"],
  ENOTCONN: ["STORAGE_UNAVAILABLE", "the storage does not answer"],
  ESTALE: ["STORAGE_UNAVAILABLE", "the storage does not answer"],
};

/** Errors of the system are about the files; all others are defects and become `INTERNAL`. */
export function toFileFailure(thrown: unknown, path?: string): FileFailure {
  if (thrown instanceof FileFailure) return thrown;
  const code = errnoCode(thrown);
  const known = ERRNO[code];
  if (known === undefined) return new FileFailure("INTERNAL", `the files cannot be worked on${code && `: ${code}`}`);
  const [reason, why] = known;
  return new FileFailure(reason, path === undefined ? why : `${JSON.stringify(path)}: ${why}`, {
    ...(path === undefined ? {} : { path }),
    errno: code,
  });
}

/** Its number in Linux, on every architecture that the host supports. */
const EDQUOT = 122;

/** The system's name of the error; empty if it is no error of the system. */
export function errnoCode(thrown: unknown): string {
  if (typeof thrown !== "object" || thrown === null || !("code" in thrown)) return "";
  const code = String(thrown.code);
  // Node has no name for the error of a filesystem whose quota is used up.
  if ("errno" in thrown && thrown.errno === -EDQUOT) return "EDQUOT";
  return /^E[A-Z0-9]+$/.test(code) ? code : "";
}
