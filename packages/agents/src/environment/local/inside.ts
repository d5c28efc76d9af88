import { lstat, realpath } from "node:fs/promises";
import { basename, dirname, isAbsolute, join, relative, resolve, sep } from "node:path";
import { SandboxError } from "@turnbox/client";
import { hasErrno } from "@turnbox/client/internal";

/** A path that was looked at: symbolic links are resolved, as far as the path exists. */
export interface Inside {
  /** On this machine. */
  readonly path: string;
  /** From the root on, `.` for the root itself. */
  readonly shown: string;
}

/**
 * Resolves a path against the root and refuses what leaves it, also by symbolic links. `root` is a real path. A program
 * that swaps links at the same moment can win against the look: it has the same rights as this process anyway.
 */
export async function resolveInside(root: string, path: string): Promise<Inside> {
  if (path.includes("\0")) throw refused(path);
  const real = await realpathOfExisting(resolve(root, path));
  if (real !== root && !real.startsWith(root === sep ? sep : root + sep)) throw refused(path);
  return { path: real, shown: relative(root, real) || "." };
}

/** The real path of what exists, and the rest of it as it is. */
async function realpathOfExisting(path: string): Promise<string> {
  try {
    return await realpath(path);
  } catch (thrown) {
    if (!hasErrno(thrown, "ENOENT")) throw thrown;
    const parent = dirname(path);
    if (parent === path || !isAbsolute(path)) throw thrown;
    // A link to nowhere is there and is not: writing to it would make a file wherever it points.
    await assertNoLink(path);
    return join(await realpathOfExisting(parent), basename(path));
  }
}

async function assertNoLink(path: string): Promise<void> {
  const stats = await lstat(path).catch(() => undefined);
  if (stats?.isSymbolicLink() === true) throw refused(path);
}

const refused = (path: string): SandboxError =>
  new SandboxError("PATH_REFUSED", `${JSON.stringify(path)} leaves the environment's directory`);
