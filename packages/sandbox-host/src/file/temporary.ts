import { randomBytes } from "node:crypto";
import { readFileSync, unlinkSync } from "node:fs";
import { statsIn } from "./entry.ts";
import { namesIn } from "./names.ts";
import type { BytePath } from "./path.ts";
import type { Directory } from "./walk.ts";

/** The maker's process and when it began, then chance. */
const NAME = /^\.turnbox-([0-9a-f]{8})([0-9a-f]{8})[0-9a-f]{8}\.tmp$/;
/** Names that are looked at for each write. */
const MAX_LOOKS = 1024;
const OWN_START = startOf(process.pid);

/** A name in a target's directory that nobody else uses. It says which process made it. */
export function newTemporaryName(): BytePath {
  return `.turnbox-${toHex(process.pid)}${OWN_START ?? toHex(0)}${randomBytes(4).toString("hex")}.tmp`;
}

/** Whether a name is one of ours, which nobody is told of. */
export function isTemporaryName(name: string): boolean {
  return NAME.test(name);
}

/**
 * Removes what workers that were killed in the middle of a write have left in a directory: files under our names whose
 * maker is gone. At most so many names are looked at, so a large directory costs no more than a small one.
 */
export function sweepTemporaries(directory: Directory): void {
  let looks = 0;
  for (const name of namesIn(directory)) {
    looks += 1;
    if (looks > MAX_LOOKS) return;
    if (isTemporaryName(name) && isLeft(directory, name)) unlinkIfThere(directory.at(name));
  }
}

function isLeft(directory: Directory, name: BytePath): boolean {
  if (statsIn(directory, name)?.isFile() !== true) return false;
  const [, pid = "", start] = NAME.exec(name) ?? [];
  const maker = Number.parseInt(pid, 16);
  // A worker writes one file at a time, so what it left itself is of an earlier job.
  return maker === process.pid || startOf(maker) !== start;
}

/** When a process began, in the system's ticks since it booted; undefined where there is none of that number. */
function startOf(pid: number): string | undefined {
  try {
    // The name of the program is in brackets, whatever it has in it.
    const fields = readFileSync(`/proc/${pid}/stat`, "latin1")
      .replace(/^.*\) /s, "")
      .split(" ");
    return toHex(Number(fields[19]));
  } catch {
    return undefined;
  }
}

function toHex(value: number): string {
  return (value % 2 ** 32).toString(16).padStart(8, "0");
}

/** What cannot go, or is gone, is no reason to refuse a write. */
export function unlinkIfThere(at: Buffer): void {
  try {
    unlinkSync(at);
  } catch {
    // It is gone, or cannot go; what led here matters more.
  }
}
