import { lstatSync, renameSync, rmdirSync, unlinkSync } from "node:fs";
import { errnoCode, FileFailure, invalidField, refused, toFileFailure } from "../failure.ts";
import { namesIn } from "../names.ts";
import type { OperationContext } from "../operation.ts";
import type { BytePath } from "../path.ts";
import type { Directory } from "../walk.ts";
import { newTemporaryName } from "../temporary.ts";

export interface RemoveInput {
  readonly path: string;
  readonly contents: "remove" | "refuse";
}

/** The most directories held at once; deeper ones are first moved up. */
const MAX_HELD = 64;
/** How often a directory is emptied that is filled again at the same time. */
const MAX_ROUNDS = 100_000;

/** Removes what is at a path. Of a link, only the link itself is removed. */
export function remove({ walk }: OperationContext, { path, contents }: RemoveInput): null {
  using target = walk.find(path, { leaf: "keep" });
  if (target.name === ".") throw refused(path, "the root cannot be removed");
  try {
    if (!lstatSync(target.at).isDirectory()) unlinkSync(target.at);
    else if (contents === "remove") removeTree(target.directory, target.name);
    else rmdirSync(target.at);
  } catch (thrown) {
    if (errnoCode(thrown) === "ENOTEMPTY")
      throw invalidField("path", "the directory is not empty; remove it with `recursive`");
    throw toFileFailure(thrown, path);
  }
  return null;
}

/**
 * Removes a directory with all that is in it. Each directory is entered from the held one above it, never through a link. A
 * directory that is replaced by a link meanwhile is removed as that link.
 */
export function removeTree(parent: Directory, name: BytePath): void {
  for (let round = 0; round < MAX_ROUNDS; round += 1) {
    using top = enterOrUnlink(parent, name);
    if (top === null) return;
    empty(top, top, 1);
    if (isRemoved(parent, name)) return;
  }
  throw new FileFailure("PATH_REFUSED", "it is filled as fast as it is emptied");
}

function empty(directory: Directory, top: Directory, held: number): void {
  for (const name of namesIn(directory)) {
    if (isUnlinked(directory, name)) continue;
    if (held >= MAX_HELD) {
      renameSync(directory.at(name), top.at(newTemporaryName()));
      continue;
    }
    using inner = enterOrUnlink(directory, name);
    if (inner === null) continue;
    empty(inner, top, held + 1);
    // A directory that is not empty is found again in the next round.
    isRemoved(directory, name);
  }
}

/** Null if there is no directory any more. */
function enterOrUnlink(parent: Directory, name: BytePath): Directory | null {
  try {
    return parent.enter(name);
  } catch (thrown) {
    if (errnoCode(thrown) === "ENOENT") return null;
    if (!["ENOTDIR", "ELOOP"].includes(errnoCode(thrown))) throw thrown;
    return isUnlinked(parent, name) ? null : enterOrUnlink(parent, name);
  }
}

/** False if it is a directory. */
function isUnlinked(parent: Directory, name: BytePath): boolean {
  try {
    unlinkSync(parent.at(name));
    return true;
  } catch (thrown) {
    if (errnoCode(thrown) === "ENOENT") return true;
    if (["EISDIR", "EPERM"].includes(errnoCode(thrown)) && isDirectory(parent, name)) return false;
    throw thrown;
  }
}

function isDirectory(parent: Directory, name: BytePath): boolean {
  return lstatSync(parent.at(name), { throwIfNoEntry: false })?.isDirectory() === true;
}

function isRemoved(parent: Directory, name: BytePath): boolean {
  try {
    rmdirSync(parent.at(name));
    return true;
  } catch (thrown) {
    if (errnoCode(thrown) === "ENOENT") return true;
    if (["ENOTEMPTY", "EEXIST", "ENOTDIR"].includes(errnoCode(thrown))) return false;
    throw thrown;
  }
}
