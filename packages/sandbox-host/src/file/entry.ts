import { lstatSync, readlinkSync, type Stats } from "node:fs";
import { errnoCode } from "./failure.ts";
import { type BytePath, toText } from "./path.ts";
import type { Directory, Target } from "./walk.ts";

/** The facts about a file as text. In names that are no UTF-8, the bytes that are none are replaced. */
export interface Entry {
  readonly name: string;
  readonly path: string;
  readonly type: "file" | "directory" | "symlink" | "other";
  readonly sizeBytes: number;
  /** Permission bits. */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly modifiedMs: number;
  /** The content of a link; empty otherwise. */
  readonly linkTarget: string;
}

/** The entry at a target, links not followed. Throws the system's ENOENT if there is none. */
export function entryAt(target: Target): Entry {
  return toEntry(target.path, lstatSync(target.at), () => readlinkSync(target.at));
}

/** The entry of a name; null if it is gone. */
export function entryIn(directory: Directory, name: BytePath, path: BytePath): Entry | null {
  const stats = statsIn(directory, name);
  if (stats === null) return null;
  try {
    return toEntry(path, stats, () => readlinkSync(directory.at(name)));
  } catch (thrown) {
    if (["EINVAL", "ENOENT"].includes(errnoCode(thrown))) return null;
    throw thrown;
  }
}

/** Null if there is no such name. */
export function statsIn(directory: Directory, name: BytePath): Stats | null {
  return lstatSync(directory.at(name), { throwIfNoEntry: false }) ?? null;
}

export function toEntry(path: BytePath, stats: Stats, readTarget: () => string = () => ""): Entry {
  const type = typeOf(stats);
  return {
    name: toText(path.slice(path.lastIndexOf("/") + 1)) || "/",
    path: toText(path),
    type,
    sizeBytes: type === "file" || type === "symlink" ? stats.size : 0,
    mode: stats.mode & 0o7777,
    uid: stats.uid,
    gid: stats.gid,
    modifiedMs: Math.trunc(stats.mtimeMs),
    linkTarget: type === "symlink" ? readTarget() : "",
  };
}

function typeOf(stats: Stats): Entry["type"] {
  if (stats.isFile()) return "file";
  if (stats.isDirectory()) return "directory";
  return stats.isSymbolicLink() ? "symlink" : "other";
}
