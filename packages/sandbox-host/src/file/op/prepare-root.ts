import { chmodSync, closeSync, constants, lstatSync, mkdirSync, openSync } from "node:fs";
import { errnoCode, refused } from "../failure.ts";
import type { OperationContext } from "../operation.ts";
import { componentsOf } from "../path.ts";
import { type Directory, joinPath } from "../walk.ts";
import { removeTree } from "./remove.ts";

/** What the root of a container must have before it boots. */
export interface PrepareRootInput {
  /** Directories below the root, such as `run/turnbox`, each with the mode that it gets if it is missing. */
  readonly directories: readonly { readonly path: string; readonly mode: number }[];
  /** Regular files below the root; anything else at their paths is replaced by an empty file. Their directories are made as well. */
  readonly files: readonly { readonly path: string; readonly mode: number }[];
}

const PARENT_MODE = 0o755;
const MAKE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
/** How often a file is made again if something replaces it at the same time. */
const MAX_ATTEMPTS = 16;

/**
 * Makes the mount points of a container in its root. Each directory is entered from the held one above it and never
 * through a link, so a link that is put there meanwhile is not followed: the operation fails with `PATH_REFUSED`.
 */
export function prepareRoot({ walk }: OperationContext, { directories, files }: PrepareRootInput): null {
  using root = walk.directory("/");
  for (const { path, mode } of directories) inDirectory(root, componentsOf(path), mode, () => undefined);
  for (const { path, mode } of files) {
    const names = componentsOf(path);
    const name = names.at(-1) ?? "";
    inDirectory(root, names.slice(0, -1), PARENT_MODE, (directory) => {
      makeFile(directory, name, { path, mode });
    });
  }
  return null;
}

/** Goes down from a held directory, makes what is missing, and calls `work` with the last directory while it is held. */
function inDirectory(
  from: Directory,
  [name, ...rest]: readonly string[],
  mode: number,
  work: (directory: Directory) => void,
): void {
  if (name === undefined) {
    work(from);
    return;
  }
  using inner = enterOrMake(from, name, rest.length === 0 ? mode : PARENT_MODE);
  inDirectory(inner, rest, mode, work);
}

function enterOrMake(parent: Directory, name: string, mode: number): Directory {
  try {
    return entered(parent, name) ?? made(parent, name, mode);
  } catch (thrown) {
    if (!["EEXIST", "ELOOP", "ENOENT", "ENOTDIR"].includes(errnoCode(thrown))) throw thrown;
    throw refused(joinPath(parent.path, name), "a sandbox needs a directory there");
  }
}

function entered(parent: Directory, name: string): Directory | undefined {
  try {
    return parent.enter(name);
  } catch (thrown) {
    if (errnoCode(thrown) === "ENOENT") return undefined;
    throw thrown;
  }
}

function made(parent: Directory, name: string, mode: number): Directory {
  mkdirSync(parent.at(name));
  const directory = parent.enter(name);
  // By the held descriptor: the name may be something else by now.
  chmodSync(directory.self, mode);
  return directory;
}

function makeFile(
  directory: Directory,
  name: string,
  { path, mode }: { readonly path: string; readonly mode: number },
): void {
  for (let attempt = 0; attempt < MAX_ATTEMPTS; attempt += 1) {
    const there = lstatSync(directory.at(name), { throwIfNoEntry: false });
    if (there?.isFile() === true) return;
    if (there !== undefined) removeTree(directory, name);
    try {
      closeSync(openSync(directory.at(name), MAKE, mode));
      return;
    } catch (thrown) {
      if (errnoCode(thrown) !== "EEXIST") throw thrown;
    }
  }
  throw refused(`/${path}`, "it changes while it is looked at");
}
