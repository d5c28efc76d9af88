import { type Stats, watch } from "node:fs";
import { statsIn } from "../entry.ts";
import { namesIn } from "../names.ts";
import type { BytePath } from "../path.ts";
import type { Directory } from "../walk.ts";

/** A directory that the system watches, and the names that were in it at the last look. */
export interface WatchedDirectory extends Disposable {
  readonly directory: Directory;
  /** The file behind each name. */
  readonly names: Map<BytePath, string>;
}

/** Identifies a file over renames: inode numbers are used again, but not with the same time of birth. */
export function identityOf(stats: Stats): string {
  return `${stats.ino}:${stats.birthtimeMs}`;
}

/**
 * Watches first and then lists, so that no change is missed. `onName` is called with each name that something happened to.
 * To dispose it closes the directory.
 */
export function openWatched(
  directory: Directory,
  options: { readonly maxNames: number; readonly onName: (watched: WatchedDirectory, name: BytePath) => void },
): { readonly watched: WatchedDirectory; readonly directories: readonly BytePath[]; readonly isComplete: boolean } {
  const names = new Map<BytePath, string>();
  const watcher = watch(directory.self, { encoding: "buffer" }, (_type, name) => {
    options.onName(watched, name?.toString("latin1") ?? "");
  });
  const watched: WatchedDirectory = {
    directory,
    names,
    [Symbol.dispose]: () => {
      watcher.close();
      directory[Symbol.dispose]();
    },
  };
  watcher.on("error", () => undefined);
  const directories: BytePath[] = [];
  for (const name of namesIn(directory)) {
    if (names.size >= options.maxNames) return { watched, directories, isComplete: false };
    const stats = statsIn(directory, name);
    if (stats === null) continue;
    names.set(name, identityOf(stats));
    if (stats.isDirectory()) directories.push(name);
  }
  return { watched, directories, isComplete: true };
}
