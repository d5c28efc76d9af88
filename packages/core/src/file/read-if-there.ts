import { readFileSync } from "node:fs";
import { hasErrno } from "./errno.ts";

/** The text of a small file of our own, or undefined where there is none. Never for files that agents can make. */
export function readIfThere(path: string): string | undefined {
  try {
    return readFileSync(path, "utf8");
  } catch (cause) {
    if (hasErrno(cause, "ENOENT")) return undefined;
    throw cause;
  }
}
