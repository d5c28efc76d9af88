import { lstat, mkdir, readdir } from "node:fs/promises";
import { join } from "node:path";
import { SandboxError } from "@turnbox/core";

/** Directories every template has: mount points of the sandbox, and the working directory of both tiers. */
const REQUIRED = ["dev", "proc", "run", "run/turnbox", "sys", "tmp", "workspace"] as const;
const MODES: Readonly<Partial<Record<string, number>>> = { tmp: 0o1777 };
/** The shell of tool calls. One of them has to be there. */
const SHELLS = ["bin/bash", "usr/bin/bash"] as const;

/**
 * Turns a directory into a usable root: makes the required directories that are missing, and refuses with
 * `TEMPLATE_INVALID` a root in which a mount could lead out (a link instead of a directory) or which has no shell.
 */
export async function completeRoot(root: string): Promise<void> {
  for (const name of REQUIRED) {
    const kind = await kindOf(join(root, name));
    if (kind === "missing") await mkdir(join(root, name), { mode: MODES[name] ?? 0o755 });
    else if (kind !== "directory") throw invalid(`/${name} must be a directory, and is ${kind}`);
  }
  for (const name of ["proc", "sys"]) {
    if ((await readdir(join(root, name))).length > 0) throw invalid(`/${name} must be empty: it is a mount point`);
  }
  const shells = await Promise.all(SHELLS.map((shell) => kindOf(join(root, shell))));
  if (shells.every((kind) => kind === "missing")) throw invalid(`there is no bash (looked for /${SHELLS.join(", /")})`);
}

type Kind = "missing" | "directory" | "a file" | "a symbolic link" | "a special file";

async function kindOf(path: string): Promise<Kind> {
  try {
    const stats = await lstat(path);
    if (stats.isSymbolicLink()) return "a symbolic link";
    if (stats.isDirectory()) return "directory";
    return stats.isFile() ? "a file" : "a special file";
  } catch {
    return "missing";
  }
}

function invalid(why: string): SandboxError {
  return new SandboxError("TEMPLATE_INVALID", `not a usable root filesystem: ${why}`, { metadata: { rule: why } });
}
