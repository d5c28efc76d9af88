import { randomUUID } from "node:crypto";
import {
  closeSync,
  constants,
  fchmodSync,
  futimesSync,
  mkdirSync,
  openSync,
  readlinkSync,
  renameSync,
  rmSync,
  symlinkSync,
  writeSync,
} from "node:fs";
import { hasReason } from "@turnbox/client";
import { hasErrno } from "@turnbox/client/internal";
import { assertTargetInside, refusedEntry } from "./entry-path.ts";
import { type Anchor, type HeldDirectory, holdDirectory } from "./held-directory.ts";

const CREATE = constants.O_WRONLY | constants.O_CREAT | constants.O_EXCL | constants.O_NOFOLLOW;
const PERMISSIONS = 0o777;

export interface FileFacts {
  readonly mode: number;
  readonly modifiedAt: Date | undefined;
}

/** A file on its way. It appears under its name, whole, when it is finished, and not at all when it is disposed before. */
export interface FileDraft extends Disposable {
  write(bytes: Uint8Array): void;
  finish(facts: FileFacts): void;
}

/**
 * Writes below a directory and nowhere else: each directory is entered from the held one above it, never through a link,
 * and what is put under a name replaces what is there, a link too, instead of following it. Directories are not replaced.
 */
export interface TreeWriter extends Disposable {
  directory(names: readonly string[]): void;
  file(names: readonly string[]): FileDraft;
  symlink(names: readonly string[], target: string): void;
}

export function createTreeWriter(root: string, anchor?: Anchor): TreeWriter {
  const top = holdDirectory(root, anchor);
  const parentOf = (names: readonly string[]): HeldDirectory => enterAll(top, names.slice(0, -1), names);
  return {
    directory: (names) => {
      using _made = enterAll(top, names, names);
    },
    file: (names) => {
      const parent = parentOf(names);
      try {
        return createDraft(parent, names);
      } catch (thrown) {
        parent[Symbol.dispose]();
        throw thrown;
      }
    },
    symlink: (names, target) => {
      using parent = parentOf(names);
      // A link of the owner's own, that went in and comes out again, may point anywhere.
      if (targetAt(parent.at(names.at(-1) ?? "")) === target) return;
      assertTargetInside(names, target);
      const draft = draftName();
      symlinkSync(target, parent.at(draft));
      moveDraft(parent, draft, names);
    },
    [Symbol.dispose]: () => {
      top[Symbol.dispose]();
    },
  };
}

function createDraft(parent: HeldDirectory, names: readonly string[]): FileDraft {
  const draft = draftName();
  const descriptor = openSync(parent.at(draft), CREATE, 0o600);
  let isPlaced = false;
  return {
    write: (bytes) => {
      for (let at = 0; at < bytes.length; ) at += writeSync(descriptor, bytes, at);
    },
    finish: ({ mode, modifiedAt }) => {
      fchmodSync(descriptor, mode & PERMISSIONS);
      if (modifiedAt !== undefined) futimesSync(descriptor, modifiedAt, modifiedAt);
      moveDraft(parent, draft, names);
      isPlaced = true;
    },
    [Symbol.dispose]: () => {
      closeSync(descriptor);
      if (!isPlaced) removeDraft(parent, draft);
      parent[Symbol.dispose]();
    },
  };
}

function targetAt(path: string): string | undefined {
  try {
    return readlinkSync(path);
  } catch (thrown) {
    if (hasErrno(thrown, "ENOENT", "EINVAL")) return undefined;
    throw thrown;
  }
}

const draftName = (): string => `.turnbox-draft-${randomUUID()}`;

/** Where the directory was replaced, the draft went with it, and what failed first is reported. */
function removeDraft(parent: HeldDirectory, draft: string): void {
  try {
    rmSync(parent.at(draft), { force: true });
  } catch (thrown) {
    if (!hasReason(thrown, "PATH_REFUSED")) throw thrown;
  }
}

/** Moves a draft to its name. */
function moveDraft(parent: HeldDirectory, draft: string, names: readonly string[]): void {
  const name = names.at(-1) ?? "";
  try {
    renameSync(parent.at(draft), parent.at(name));
  } catch (thrown) {
    removeDraft(parent, draft);
    if (hasErrno(thrown, "EISDIR", "ENOTEMPTY", "EEXIST")) throw refusedEntry(names.join("/"), "a directory is there");
    throw thrown;
  }
}

/** Goes down, making what is missing. */
function enterAll(top: HeldDirectory, path: readonly string[], shown: readonly string[]): HeldDirectory {
  let directory = top.enter(".");
  for (const name of path) {
    using parent = directory;
    directory = enterOrMake(parent, name, shown);
  }
  return directory;
}

function enterOrMake(parent: HeldDirectory, name: string, shown: readonly string[]): HeldDirectory {
  try {
    mkdirSync(parent.at(name));
  } catch (thrown) {
    if (!hasErrno(thrown, "EEXIST")) throw thrown;
  }
  try {
    return parent.enter(name);
  } catch (thrown) {
    if (!hasErrno(thrown, "ENOTDIR", "ELOOP")) throw thrown;
    throw refusedEntry(shown.join("/"), "it leads through a link, or through what is no directory");
  }
}
