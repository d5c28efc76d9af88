import { closeSync, constants, fstatSync, lstatSync, openSync } from "node:fs";
import { join } from "node:path";
import { SandboxError } from "@turnbox/client";

const ENTER = constants.O_RDONLY | constants.O_DIRECTORY | constants.O_NOFOLLOW;

/**
 * How a name in a held directory is reached. By the descriptor, no other directory can be put in its place; that is
 * Linux. By the path, the directory is looked at again right before each use.
 */
export type Anchor = "descriptor" | "path";

/** A directory that is kept open. Disposing closes it. */
export interface HeldDirectory extends Disposable {
  /** What node:fs is given for the directory itself: to list it. */
  readonly self: string;
  /** What node:fs is given for a name in it. Only for calls that follow no link at the end. */
  at(name: string): string;
  /** A directory in it, never through a link: the system's ENOTDIR or ELOOP where it is one. The caller owns it. */
  enter(name: string): HeldDirectory;
}

export const USUAL_ANCHOR: Anchor = process.platform === "linux" ? "descriptor" : "path";

/** Holds a directory of the caller's own choice; links on the way to it are followed, it is trusted. */
export function holdDirectory(path: string, anchor: Anchor = USUAL_ANCHOR): HeldDirectory {
  return held(openSync(path, constants.O_RDONLY | constants.O_DIRECTORY), path, anchor);
}

function held(descriptor: number, path: string, anchor: Anchor): HeldDirectory {
  const checked = (): string => {
    if (anchor === "descriptor") return `/proc/self/fd/${descriptor}`;
    assertSame(descriptor, path);
    return path;
  };
  return {
    // The slash makes the system go into the directory that is held.
    get self() {
      return `${checked()}/`;
    },
    // Not by `join`: it would take the dot of `.` away, and with it the step into the directory.
    at: (name) => `${checked()}/${name}`,
    enter: (name) => held(openSync(`${checked()}/${name}`, ENTER), join(path, name), anchor),
    [Symbol.dispose]: () => {
      closeSync(descriptor);
    },
  };
}

function assertSame(descriptor: number, path: string): void {
  const own = fstatSync(descriptor);
  // The root may be reached through a link of its owner; `stat` of it would be the same directory.
  const there = lstatSync(`${path}/`);
  if (own.dev === there.dev && own.ino === there.ino) return;
  throw new SandboxError("PATH_REFUSED", "a directory was replaced while its files were written");
}
