import { closeSync, fsyncSync, linkSync, openSync, rmSync, writeSync } from "node:fs";
import { randomToken } from "../id/token.ts";
import { hasErrno } from "./errno.ts";

export interface NewFile {
  readonly content: string;
  readonly mode: number;
}

/** Writes a whole, synced file under a name beside `path` that nobody else uses. The caller moves or removes it. */
export function writeDraft(path: string, { content, mode }: NewFile): string {
  const draft = `${path}.draft-${randomToken(12)}`;
  const descriptor = openSync(draft, "wx", mode);
  try {
    writeSync(descriptor, content);
    fsyncSync(descriptor);
  } finally {
    closeSync(descriptor);
  }
  return draft;
}

/**
 * Makes a file that appears under its name complete or not at all. Of several that try at once, one wins; `exists` is
 * the answer to the others, and they read what the winner wrote.
 */
export function createOnce(path: string, file: NewFile): "created" | "exists" {
  const draft = writeDraft(path, file);
  try {
    linkSync(draft, path);
    return "created";
  } catch (cause) {
    if (hasErrno(cause, "EEXIST")) return "exists";
    throw cause;
  } finally {
    rmSync(draft, { force: true });
  }
}
