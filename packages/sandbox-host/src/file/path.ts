import { WORKING_DIRECTORY } from "../session/environment.ts";
import { invalidField } from "./failure.ts";

/** A name or path as the bytes that it is, one character for each byte: names need not be UTF-8. */
export type BytePath = string;

export const MAX_PATH_BYTES = 4096;
export const MAX_NAME_BYTES = 255;

/** The components of a path of a request, from the root. `..` is left in it: only the walk can resolve it. */
export function parsePath(field: string, path: string): readonly BytePath[] {
  if (path === "") throw invalidField(field, "must not be empty");
  if (!path.isWellFormed()) throw invalidField(field, "must be Unicode");
  if (path.includes("\0")) throw invalidField(field, "must have no NUL");
  const bytes = toBytes(path);
  if (bytes.length > MAX_PATH_BYTES) throw invalidField(field, `must have at most ${MAX_PATH_BYTES} bytes`);
  const components = componentsOf(bytes);
  if (components.some((one) => one.length > MAX_NAME_BYTES)) {
    throw invalidField(field, `each name in it must have at most ${MAX_NAME_BYTES} bytes`);
  }
  return bytes.startsWith("/") ? components : [...componentsOf(WORKING_DIRECTORY), ...components];
}

export function componentsOf(path: BytePath): readonly BytePath[] {
  return path.split("/").filter((one) => one !== "" && one !== ".");
}

/** Text as the byte string that names are. */
export function toBytes(text: string): BytePath {
  return Buffer.from(text, "utf8").toString("latin1");
}

const IS_ASCII = /^[\x20-\x7e]*$/;

/** A byte string as text. */
export function toText(bytes: BytePath): string {
  // Most names are ASCII, which is the same in both.
  return IS_ASCII.test(bytes) ? bytes : Buffer.from(bytes, "latin1").toString("utf8");
}
