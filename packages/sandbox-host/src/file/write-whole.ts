import {
  closeSync,
  constants,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  mkdirSync,
  openSync,
  renameSync,
  type Stats,
  writeSync,
} from "node:fs";
import { statsIn, toEntry, type Entry } from "./entry.ts";
import { errnoCode, FileFailure, refused, toFileFailure } from "./failure.ts";
import { parsePath, toText } from "./path.ts";
import { newTemporaryName, sweepTemporaries, unlinkIfThere } from "./temporary.ts";
import type { Target, Walk } from "./walk.ts";

const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
const DEFAULT_MODE = 0o644;
const PERMISSIONS = 0o777;

/**
 * Writes a file whole: at any moment the old content or the new one is there, never a part. Owner and permissions of an
 * existing file are kept, except for set-user bits; `mode` replaces the permissions. Only regular files are replaced.
 */
export function writeWhole(
  target: Target,
  pieces: Iterable<Uint8Array>,
  { mode }: { readonly mode?: number | undefined } = {},
): Entry {
  const { directory, name, path } = target;
  const old = statsIn(directory, name);
  if (old?.isDirectory() === true) throw refused(toText(path), "it is a directory");
  if (old !== null && !old.isFile()) throw refused(toText(path), "it is no regular file");
  sweepTemporaries(directory);
  const temporary = directory.at(newTemporaryName());
  const descriptor = openSync(temporary, CREATE, 0o600);
  try {
    for (const piece of pieces) writeAll(descriptor, piece);
    setOwner(descriptor, old);
    fchmodSync(descriptor, mode ?? (old === null ? DEFAULT_MODE : old.mode & PERMISSIONS));
    fsyncSync(descriptor);
    const stats = fstatSync(descriptor);
    renameSync(temporary, target.at);
    return toEntry(path, stats);
  } catch (thrown) {
    unlinkIfThere(temporary);
    throw toFileFailure(thrown, toText(path));
  } finally {
    closeSync(descriptor);
  }
}

function setOwner(descriptor: number, old: Stats | null): void {
  if (old !== null && (old.uid !== process.getuid?.() || old.gid !== process.getgid?.())) {
    fchownSync(descriptor, old.uid, old.gid);
  }
}

export function writeAll(descriptor: number, bytes: Uint8Array): void {
  for (let written = 0; written < bytes.length; ) written += writeSync(descriptor, bytes, written);
}

/** Makes the missing directories above a path. */
export function makeParents(walk: Walk, path: string, { field = "path" }: { readonly field?: string } = {}): void {
  try {
    walk.find(path, { field })[Symbol.dispose]();
    return;
  } catch (thrown) {
    if (!(thrown instanceof FileFailure) || thrown.reason !== "FILE_NOT_FOUND") throw thrown;
  }
  const components = parsePath(field, path).map(toText);
  for (let depth = 1; depth < components.length; depth += 1) {
    makeIfMissing(walk, `/${components.slice(0, depth).join("/")}`, field);
  }
}

function makeIfMissing(walk: Walk, path: string, field: string): void {
  using target = walk.find(path, { field });
  try {
    mkdirSync(target.at);
  } catch (thrown) {
    if (errnoCode(thrown) !== "EEXIST") throw toFileFailure(thrown, path);
  }
}
