import { randomBytes } from "node:crypto";
import { readFileSync, unlinkSync } from "node:fs";
import { statsIn } from "./entry.ts";
import { namesIn } from "./names.ts";
import type { BytePath } from "./path.ts";
import type { Directory } from "./walk.ts";

/** The process that made it and when that began, then random digits. */
const NAME = /^\.turnbox-([0-9a-f]{8})([0-9a-f]{8})[0-9a-f]{8}\.tmp$/;
/** Names that are looked at for each write. */
const MAX_LOOKS = 1024;
const OWN_START = startOf(process.pid);

/** A name in a target's directory that is used for nothing else. It contains which process made it. */
export function newTemporaryName(): BytePath {
  return `.turnbox-${toHex(process.pid)}${OWN_START ?? toHex(0)}${randomBytes(4).toString("hex")}.tmp`;
}

/** Whether a name is one of ours; these are not reported to callers. */
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
  // A worker writes one file at a time, so a file of its own that is still there is left from an earlier job.
  return maker === process.pid || startOf(maker) !== start;
}

/** When a process began, in the system's ticks since it booted; undefined if there is no process of that number. */
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

/** A file that cannot be removed is no reason to refuse a write. */
export function unlinkIfThere(at: Buffer): void {
  try {
    unlinkSync(at);
  } catch {
    // It is gone or cannot be removed; the caller's own failure matters more.
  }
}
