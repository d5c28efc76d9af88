import { SandboxError } from "@turnbox/client";

const MAX_DEPTH = 256;
const MAX_NAME_BYTES = 255;
const MAX_TARGET_BYTES = 4095;

/** The names of an entry's path. What could lead out, or could not be shown, is refused and not mended. */
export function parseEntryPath(path: string): readonly string[] {
  if (path.startsWith("/")) throw refusedEntry(path, "it is absolute");
  const names = path.split("/").filter((name) => name !== "" && name !== ".");
  if (names.includes("..")) throw refusedEntry(path, "it leads out of the directory");
  // U+FFFD stands for bytes that are no UTF-8: another name would be written than the one that was packed.
  if (/[\u0000-\u001f\u007f\ufffd]/u.test(path)) throw refusedEntry(path, "it has characters that names must not have");
  if (names.length > MAX_DEPTH || names.some((name) => Buffer.byteLength(name) > MAX_NAME_BYTES)) {
    throw refusedEntry(path, "it is too long");
  }
  return names;
}

/**
 * Checks where a link in the directory of `names` points. `..` may only begin the target: after a name it would start
 * from wherever that name, perhaps a link itself, leads.
 */
export function assertTargetInside(names: readonly string[], target: string): void {
  const shown = names.join("/");
  if (target === "" || Buffer.byteLength(target) > MAX_TARGET_BYTES || target.includes("\0")) {
    throw refusedEntry(shown, "its target is no path");
  }
  if (target.startsWith("/")) throw refusedEntry(shown, "its target is absolute");
  const steps = target.split("/").filter((step) => step !== "" && step !== ".");
  const ups = steps.findIndex((step) => step !== "..");
  const leading = ups < 0 ? steps.length : ups;
  if (leading > names.length - 1) throw refusedEntry(shown, "its target is outside of the directory");
  if (steps.includes("..", leading)) throw refusedEntry(shown, "its target goes up after going down");
}

export function refusedEntry(path: string, why: string): SandboxError {
  return new SandboxError("PATH_REFUSED", `${JSON.stringify(path.slice(0, 200))} is not taken over: ${why}`);
}
