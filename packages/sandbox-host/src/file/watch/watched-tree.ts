import type { Stats } from "node:fs";
import { statsIn } from "../entry.ts";
import { errnoCode } from "../failure.ts";
import { type BytePath, toText } from "../path.ts";
import { isTemporaryName } from "../temporary.ts";
import { type Directory, joinPath } from "../walk.ts";
import { identityOf, openWatched, type WatchedDirectory } from "./watched-directory.ts";

/** Something that happened below a watched directory. */
export interface WatchEvent {
  readonly kind: "created" | "modified" | "removed" | "renamed" | "overflow" | "started";
  readonly path: string;
  /** The path before a rename; empty otherwise. */
  readonly oldPath: string;
}

/** The watched directories below one, and what happened to their names since the last look. */
export interface WatchedTree extends Disposable {
  /** Whether everything that is to be watched is. */
  readonly isWhole: boolean;
  /** What happened since the last look; not complete where something was lost. */
  look(): { readonly events: readonly WatchEvent[]; readonly isComplete: boolean };
  /** Begins anew with what is there now. */
  resync(): void;
}

const MAX_DIRECTORIES = 4096;
const MAX_NAMES = 200_000;
/** Names that wait for a look; more are not worth looking at one by one. */
const MAX_PENDING = 10_000;

interface Found {
  readonly watched: WatchedDirectory;
  readonly name: BytePath;
  readonly stats: Stats;
}

/** `top` stays the caller's. */
export function createWatchedTree(
  top: Directory,
  { depth, onChange }: { readonly depth: "one" | "all"; readonly onChange: () => void },
): WatchedTree {
  const byPath = new Map<BytePath, WatchedDirectory>();
  const pending = new Map<WatchedDirectory, Set<BytePath>>();
  let pendingCount = 0;
  let knownNames = 0;
  let isWhole = true;

  const onName = (watched: WatchedDirectory, name: BytePath): void => {
    onChange();
    if (name === "" || isTemporaryName(name) || pendingCount >= MAX_PENDING) return;
    const names = pending.get(watched) ?? new Set();
    if (!names.has(name)) pendingCount += 1;
    pending.set(watched, names.add(name));
  };

  /** Watches a directory and, where wanted, those below it; answers with the names that are there. */
  const add = (first: Directory): readonly BytePath[] => {
    const paths: BytePath[] = [];
    const queue = [first];
    for (let directory = queue.pop(); directory !== undefined; directory = queue.pop()) {
      if (byPath.size >= MAX_DIRECTORIES || knownNames >= MAX_NAMES) {
        isWhole = false;
        directory[Symbol.dispose]();
        continue;
      }
      const { watched, directories, isComplete } = openWatched(directory, { maxNames: MAX_NAMES - knownNames, onName });
      isWhole &&= isComplete;
      byPath.set(directory.path, watched);
      knownNames += watched.names.size;
      for (const name of watched.names.keys()) paths.push(joinPath(directory.path, name));
      if (depth === "all")
        queue.push(...directories.map((name) => enterIfThere(watched.directory, name)).filter(isThere));
    }
    return paths;
  };

  const drop = (path: BytePath): void => {
    for (const [one, watched] of byPath) {
      if (one !== path && !one.startsWith(`${path}/`)) continue;
      byPath.delete(one);
      pending.delete(watched);
      knownNames -= watched.names.size;
      watched[Symbol.dispose]();
    }
  };

  const clear = (): void => {
    for (const watched of byPath.values()) watched[Symbol.dispose]();
    byPath.clear();
    pending.clear();
    pendingCount = 0;
    knownNames = 0;
  };

  const resync = (): void => {
    clear();
    isWhole = true;
    add(top.enter("."));
  };

  /** What is new under a name: its own event, and those of what it brought along. */
  const arrived = ({ watched, name, stats }: Found, oldPath: BytePath | undefined): readonly WatchEvent[] => {
    const path = joinPath(watched.directory.path, name);
    if (!watched.names.has(name)) knownNames += 1;
    watched.names.set(name, identityOf(stats));
    const isWatched = stats.isDirectory() && depth === "all";
    const inner = isWatched ? enterIfThere(watched.directory, name) : null;
    const below = inner === null ? [] : add(inner);
    if (oldPath !== undefined) return [event("renamed", path, oldPath)];
    return [event("created", path), ...below.map((one) => event("created", one))];
  };

  const look = (): readonly WatchEvent[] => {
    const { gone, found, modified } = sortOut(pending);
    pending.clear();
    pendingCount = 0;
    for (const path of gone.values()) drop(path);
    knownNames -= gone.size;
    const arrivals = found.flatMap((one) => {
      const identity = identityOf(one.stats);
      const oldPath = gone.get(identity);
      gone.delete(identity);
      return arrived(one, oldPath);
    });
    return [...[...gone.values()].map((path) => event("removed", path)), ...arrivals, ...modified];
  };

  resync();
  return {
    get isWhole() {
      return isWhole;
    },
    look: () => {
      const wasWhole = isWhole;
      if (pendingCount >= MAX_PENDING) {
        resync();
        return { events: [], isComplete: false };
      }
      const events = look();
      return { events, isComplete: isWhole || !wasWhole };
    },
    resync,
    [Symbol.dispose]: clear,
  };
}

/** What happened to the names: files that are gone by their identity, new ones, and events of those that are still there. */
function sortOut(pending: ReadonlyMap<WatchedDirectory, ReadonlySet<BytePath>>): {
  readonly gone: Map<string, BytePath>;
  readonly found: readonly Found[];
  readonly modified: readonly WatchEvent[];
} {
  const gone = new Map<string, BytePath>();
  const found: Found[] = [];
  const modified: WatchEvent[] = [];
  for (const [watched, names] of pending) {
    for (const name of names) {
      const was = watched.names.get(name);
      const stats = statsIn(watched.directory, name);
      const path = joinPath(watched.directory.path, name);
      if (stats === null) {
        if (was !== undefined) gone.set(was, path);
        watched.names.delete(name);
      } else if (was === undefined) found.push({ watched, name, stats });
      else {
        watched.names.set(name, identityOf(stats));
        modified.push(event("modified", path));
      }
    }
  }
  return { gone, found, modified };
}

function event(kind: WatchEvent["kind"], path: BytePath, oldPath: BytePath = ""): WatchEvent {
  return { kind, path: toText(path), oldPath: toText(oldPath) };
}

function isThere(directory: Directory | null): directory is Directory {
  return directory !== null;
}

/** Null where there is no directory of this name any more. */
function enterIfThere(parent: Directory, name: BytePath): Directory | null {
  try {
    return parent.enter(name);
  } catch (thrown) {
    if (["ENOENT", "ENOTDIR", "ELOOP"].includes(errnoCode(thrown))) return null;
    throw thrown;
  }
}
