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

const MAX_DIRECTORIES = 4096;
const MAX_NAMES = 200_000;
/** Names that wait for a look. If there are more, the tree starts again instead. */
const MAX_PENDING = 10_000;

interface Found {
  readonly watched: WatchedDirectory;
  readonly name: BytePath;
  readonly stats: Stats;
}

interface WatchOptions {
  /** `one`: the directory alone. `all`: those below it as well. */
  readonly depth: "one" | "all";
  /** Called when something may have happened; a `look` then finds out what. */
  readonly onChange: () => void;
}

/** The watched directories from one down, and what happened to their names since the last look. */
export class WatchedTree implements Disposable {
  readonly #top: Directory;
  readonly #options: WatchOptions;
  readonly #byPath = new Map<BytePath, WatchedDirectory>();
  readonly #pending = new Map<WatchedDirectory, Set<BytePath>>();
  #pendingCount = 0;
  #knownNames = 0;
  #isWhole = true;

  /** The caller keeps and closes `top`. */
  constructor(top: Directory, options: WatchOptions) {
    this.#top = top;
    this.#options = options;
    this.resync();
  }

  /** Whether all directories and names that should be watched are watched. */
  get isWhole(): boolean {
    return this.#isWhole;
  }

  /** What happened since the last look; not complete if something was lost. */
  look(): { readonly events: readonly WatchEvent[]; readonly isComplete: boolean } {
    const wasWhole = this.#isWhole;
    if (this.#pendingCount >= MAX_PENDING) {
      this.resync();
      return { events: [], isComplete: false };
    }
    const events = this.#lookAtPending();
    return { events, isComplete: this.#isWhole || !wasWhole };
  }

  /** Starts again with the current content of the directories. */
  resync(): void {
    this[Symbol.dispose]();
    this.#isWhole = true;
    this.#add(this.#top.enter("."));
  }

  [Symbol.dispose](): void {
    for (const watched of this.#byPath.values()) watched[Symbol.dispose]();
    this.#byPath.clear();
    this.#pending.clear();
    this.#pendingCount = 0;
    this.#knownNames = 0;
  }

  readonly #onName = (watched: WatchedDirectory, name: BytePath): void => {
    this.#options.onChange();
    if (name === "" || isTemporaryName(name) || this.#pendingCount >= MAX_PENDING) return;
    const names = this.#pending.get(watched) ?? new Set();
    if (!names.has(name)) this.#pendingCount += 1;
    this.#pending.set(watched, names.add(name));
  };

  /** Watches a directory and, if wanted, those below it; returns the paths of all names in them. */
  #add(first: Directory): readonly BytePath[] {
    const paths: BytePath[] = [];
    const queue = [first];
    for (let directory = queue.pop(); directory !== undefined; directory = queue.pop()) {
      if (this.#byPath.size >= MAX_DIRECTORIES || this.#knownNames >= MAX_NAMES) {
        this.#isWhole = false;
        directory[Symbol.dispose]();
        continue;
      }
      const options = { maxNames: MAX_NAMES - this.#knownNames, onName: this.#onName };
      const { watched, directories, isComplete } = openWatched(directory, options);
      this.#isWhole &&= isComplete;
      this.#byPath.set(directory.path, watched);
      this.#knownNames += watched.names.size;
      for (const name of watched.names.keys()) paths.push(joinPath(directory.path, name));
      if (this.#options.depth === "all")
        queue.push(...directories.map((name) => enterIfThere(watched.directory, name)).filter(isThere));
    }
    return paths;
  }

  #drop(path: BytePath): void {
    for (const [one, watched] of this.#byPath) {
      if (one !== path && !one.startsWith(`${path}/`)) continue;
      this.#byPath.delete(one);
      this.#pending.delete(watched);
      this.#knownNames -= watched.names.size;
      watched[Symbol.dispose]();
    }
  }

  #lookAtPending(): readonly WatchEvent[] {
    const { gone, found, modified } = sortOut(this.#pending);
    this.#pending.clear();
    this.#pendingCount = 0;
    for (const path of gone.values()) this.#drop(path);
    this.#knownNames -= gone.size;
    const arrivals = found.flatMap((one) => {
      const identity = identityOf(one.stats);
      const oldPath = gone.get(identity);
      gone.delete(identity);
      return this.#arrived(one, oldPath);
    });
    return [...[...gone.values()].map((path) => event("removed", path)), ...arrivals, ...modified];
  }

  /** The event of a new name, and those of the names below it if it is a directory that is watched. */
  #arrived({ watched, name, stats }: Found, oldPath: BytePath | undefined): readonly WatchEvent[] {
    const path = joinPath(watched.directory.path, name);
    if (!watched.names.has(name)) this.#knownNames += 1;
    watched.names.set(name, identityOf(stats));
    const isWatched = stats.isDirectory() && this.#options.depth === "all";
    const inner = isWatched ? enterIfThere(watched.directory, name) : null;
    const below = inner === null ? [] : this.#add(inner);
    if (oldPath !== undefined) return [event("renamed", path, oldPath)];
    return [event("created", path), ...below.map((one) => event("created", one))];
  }
}

/** Sorts the names by what happened to them: files that are gone, by their identity; new files; events of those that stayed. */
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

/** Null if there is no directory of this name any more. */
function enterIfThere(parent: Directory, name: BytePath): Directory | null {
  try {
    return parent.enter(name);
  } catch (thrown) {
    if (["ENOENT", "ENOTDIR", "ELOOP"].includes(errnoCode(thrown))) return null;
    throw thrown;
  }
}
