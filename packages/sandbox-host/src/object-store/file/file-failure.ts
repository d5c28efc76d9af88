import { errnoOf, hasErrno, invalidArgument, SandboxError } from "@turnbox/core";
import { unwrapBodyFailure } from "../body-chunks.ts";

const FULL = ["ENOSPC", "EDQUOT", "EFBIG"];
const DENIED = ["EACCES", "EPERM", "EROFS", "ELOOP"];
/** A file stands where the key needs a folder, or a folder where it needs the file. */
const OTHER_KEY = ["ENOTDIR", "EISDIR", "EEXIST", "ENOTEMPTY"];

/** The failure of a file operation as the port names it. Ours stay as they are, and so do those that are no system errors. */
export function fileFailure(thrown: unknown, key?: string): Error {
  if (thrown instanceof SandboxError) return thrown;
  const more = { cause: thrown, ...(key === undefined ? {} : { metadata: { key } }) };
  const code = errnoOf(thrown);
  if (code === undefined) return thrown instanceof Error ? thrown : new Error(String(thrown));
  if (hasErrno(thrown, "NOT_AN_OBJECT")) {
    return new SandboxError(
      "OBJECT_DAMAGED",
      `the object ${key ?? ""} is damaged: its file does not begin as objects do`,
      more,
    );
  }
  if (hasErrno(thrown, ...FULL)) {
    return new SandboxError("OBJECT_STORE_FULL", `the directory of the object store has no room (${code})`, more);
  }
  if (hasErrno(thrown, ...DENIED)) {
    const why = code === "ELOOP" ? "there is a link, and none is followed" : code;
    return new SandboxError("OBJECT_STORE_DENIED", `the directory of the object store cannot be used: ${why}`, more);
  }
  if (hasErrno(thrown, ...OTHER_KEY)) {
    return invalidArgument(
      "key",
      "must not be the beginning of another object's key, nor begin with one, up to a slash",
    );
  }
  return new SandboxError("OBJECT_STORE_UNAVAILABLE", `the directory of the object store failed (${code})`, more);
}

/** The system error that a worker thread has met. */
export function systemError({ code, message }: { readonly code: string; readonly message: string }): Error {
  return Object.assign(new Error(message), code === "" ? {} : { code });
}

/** The reason of the signal if that has aborted; else the failure as the port names it, and that of a body as it was thrown. */
export function failureUnder(signal: AbortSignal, thrown: unknown, key?: string): Error {
  if (signal.aborted) return signal.reason as Error;
  const own = unwrapBodyFailure(thrown);
  return own === thrown ? fileFailure(thrown, key) : (own as Error);
}

/** The failure of a body that is read. */
export function bodyFailure(key: string, thrown: unknown): Error {
  const failure = fileFailure(thrown, key);
  return failure instanceof SandboxError
    ? failure
    : new SandboxError("OBJECT_STORE_UNAVAILABLE", failure.message, { cause: thrown });
}
