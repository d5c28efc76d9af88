import { closeSync, fstatSync, openSync, readlinkSync } from "node:fs";
import { errnoCode, FileFailure, notFound, refused, toFileFailure } from "./failure.ts";
import { bytePath, closing, ENTER, NOT_FILES, type OpenFile, openRegular, type OwnedFile } from "./open-file.ts";
import { type BytePath, componentsOf, parsePath } from "./path.ts";

/**
 * A walk through the files of a session. Nothing inside can lead it out of them, whatever is renamed or linked meanwhile.
 *
 * Each directory on the way is held open and entered from the held one above it, by `/proc/self/fd/<n>/<name>` without
 * following links. A link is read in its held directory and followed by the walk itself: absolute means from the session's
 * root, `..` never leads above it, at most 40 links are followed. A walk ends in a held directory and a name in it, and
 * every operation goes through the two. A walk blocks, so it is for file workers only.
 *
 * Names and inner paths are byte strings (one character per byte), as names need not be UTF-8.
 */
export interface Walk extends Disposable {
  /** The filesystem that the root is on. */
  readonly device: number;
  /** Throws if the root is not there, as every search for a file in it does. */
  assertThere(): void;
  /**
   * The directory and the name that a path ends in; the name may not exist. `leaf` decides about a link at
   * the end: `follow` (default) or `keep`. `field` names the path's field in refusals; default "path".
   */
  find(path: string, options?: FindOptions): Target;
  /** A directory, with links followed. */
  directory(path: string, options?: { readonly field?: string }): Directory;
  /** A regular file for reading, with links followed. It is the walk's, and closed with it. */
  open(path: string, options?: { readonly field?: string }): OpenFile;
}

export interface FindOptions {
  readonly field?: string;
  readonly leaf?: "follow" | "keep";
}

/** What a path ends in: a held directory and a name in it. To dispose it closes the directory. */
export interface Target extends Disposable {
  readonly directory: Directory;
  /** `.` for the root. */
  readonly name: BytePath;
  /** Absolute inside. */
  readonly path: BytePath;
  /** The argument of node:fs for the name, until the target is disposed. Only for calls that follow no link at the end. */
  readonly at: Buffer;
}

/** A held directory. Names are single components, which come from a listing or a walk. */
export interface Directory extends Disposable {
  readonly descriptor: number;
  /** Absolute inside, without a slash at its end but for the root. */
  readonly path: BytePath;
  /** The argument of node:fs for the directory itself, to list it. */
  readonly self: Buffer;
  /** The argument of node:fs for a name in it. */
  at(name: BytePath): Buffer;
  /** A directory in it, never through a link; the caller owns it. Throws the system's ENOTDIR if it is none. */
  enter(name: BytePath): Directory;
  /** A regular file in it, never through a link; the caller owns it. Throws the system's ELOOP if it is a link. */
  open(name: BytePath): OwnedFile;
}

const MAX_LINKS = 40;
/** The depth of the longest possible path. */
const MAX_DEPTH = 2048;
/** How often a name that changes under the walk is looked at again. */
const MAX_LOOKS = 16;

/**
 * `root` is a directory of this machine that nothing inside can replace. If `device` is given, the root has to be on that
 * filesystem still: an unmounted head leaves an empty directory, which has no owner. It is opened when it is first needed.
 */
export function createWalk(root: string, { device }: { readonly device?: number | undefined } = {}): Walk {
  let top: Top | undefined;
  const topOf = (): Top => (top ??= openTop(root, device));
  const opened: OwnedFile[] = [];

  const find = (path: string, { field = "path", leaf = "follow" }: FindOptions = {}): Target => {
    const trail = createTrail(topOf().descriptor);
    try {
      return trail.end(walkAlong(trail, parsePath(field, path), { leaf, shown: path }));
    } catch (thrown) {
      trail[Symbol.dispose]();
      throw toFileFailure(thrown, path);
    }
  };

  /** Opens what a path ends in: first without following a link there, as most paths end in none; then along the link. */
  const openAt = <Opened>(path: string, field: string, open: (target: Target) => Opened): Opened => {
    for (let looks = 1; ; looks += 1) {
      using target = find(path, { field, leaf: looks === 1 ? "keep" : "follow" });
      try {
        return open(target);
      } catch (thrown) {
        if (!["ELOOP", "ENOTDIR"].includes(errnoCode(thrown))) throw toFileFailure(thrown, path);
        if (errnoCode(thrown) === "ENOTDIR" && !isLink(target)) throw notFound(path, "it is no directory");
        if (looks === MAX_LOOKS) throw refused(path, "it changes while it is looked at");
      }
    }
  };

  return {
    get device() {
      return topOf().device;
    },
    assertThere: () => void topOf(),
    find,
    directory: (path, { field = "path" } = {}) => openAt(path, field, ({ directory, name }) => directory.enter(name)),
    open: (path, { field = "path" } = {}) => {
      const file = openAt(path, field, ({ directory, name }) => directory.open(name));
      opened.push(file);
      return file;
    },
    [Symbol.dispose]: () => {
      for (const file of opened.splice(0)) file[Symbol.dispose]();
      if (top !== undefined) closeSync(top.descriptor);
      top = undefined;
    },
  };
}

/** The held root. */
interface Top {
  readonly descriptor: number;
  readonly device: number;
}

function openTop(root: string, expected: number | undefined): Top {
  const descriptor = openRoot(root);
  const { dev } = fstatSync(descriptor);
  if (expected === undefined || expected === dev) return { descriptor, device: dev };
  closeSync(descriptor);
  throw rootLost("another filesystem is there");
}

function openRoot(root: string): number {
  try {
    return openSync(root, ENTER);
  } catch (thrown) {
    throw rootLost(errnoCode(thrown));
  }
}

/** Nothing was done: the service mounts the files and tries again. */
function rootLost(why: string): FileFailure {
  return new FileFailure("STORAGE_UNAVAILABLE", `the session's files are not there: ${why}`, { root: "lost" });
}

/** The directories from the root to the current one, each held. */
interface Trail extends Disposable {
  readonly current: Directory;
  readonly depth: number;
  push(directory: Directory): void;
  up(): void;
  toRoot(): void;
  /** Gives the current directory to the target and closes the others. Without a name, the target is that directory itself. */
  end(name: BytePath | null): Target;
}

function createTrail(top: number): Trail {
  // The walk owns the root's descriptor.
  const root = directoryAt(top, "/", () => undefined);
  const held: Directory[] = [];
  const release = (): void => {
    while (held.length > 0) held.pop()?.[Symbol.dispose]();
  };
  const trail: Trail = {
    get current() {
      return held.at(-1) ?? root;
    },
    get depth() {
      return held.length;
    },
    push: (directory) => {
      held.push(directory);
      if (held.length > MAX_DEPTH) throw new FileFailure("PATH_REFUSED", "the path is too deep");
    },
    up: () => {
      held.pop()?.[Symbol.dispose]();
    },
    toRoot: release,
    end: (name) => {
      if (name !== null) {
        const directory = held.pop() ?? root;
        release();
        return targetIn(directory, name);
      }
      if (held.length === 0) return targetIn(root, ".");
      const own = (held.at(-1) ?? root).path;
      trail.up();
      return trail.end(own.slice(own.lastIndexOf("/") + 1));
    },
    [Symbol.dispose]: release,
  };
  return trail;
}

function targetIn(directory: Directory, name: BytePath): Target {
  return {
    directory,
    name,
    path: name === "." ? directory.path : joinPath(directory.path, name),
    at: directory.at(name),
    [Symbol.dispose]: () => {
      directory[Symbol.dispose]();
    },
  };
}

/** Goes down to the directory that the path ends in. Returns the name in it; null for the directory itself. */
function walkAlong(
  trail: Trail,
  components: readonly BytePath[],
  { leaf, shown }: { readonly leaf: "follow" | "keep"; readonly shown: string },
): BytePath | null {
  const pending = [...components].reverse();
  let links = 0;
  let looks = 0;
  for (let name = pending.pop(); name !== undefined; name = pending.pop()) {
    const isLeaf = pending.length === 0;
    const step = takeStep(trail, name, { isLeaf, leaf, shown });
    if (step.kind === "leaf") return name;
    if (step.kind === "again") {
      looks += 1;
      if (looks > MAX_LOOKS) throw refused(shown, "it changes while it is looked at");
      pending.push(name);
    }
    if (step.kind !== "link") continue;
    links += 1;
    if (links > MAX_LINKS) throw refused(shown, `it leads through more than ${MAX_LINKS} links`);
    if (step.target.startsWith("/")) trail.toRoot();
    pending.push(...[...componentsOf(step.target)].reverse());
  }
  return null;
}

type Step = { readonly kind: "moved" | "leaf" | "again" } | { readonly kind: "link"; readonly target: BytePath };

function takeStep(
  trail: Trail,
  name: BytePath,
  { isLeaf, leaf, shown }: { readonly isLeaf: boolean; readonly leaf: "follow" | "keep"; readonly shown: string },
): Step {
  if (name === "..") {
    trail.up();
    return { kind: "moved" };
  }
  if (trail.depth === 0 && NOT_FILES.has(name)) throw refused(shown, `/${name} is not among the session's files`);
  if (isLeaf && leaf === "keep") return { kind: "leaf" };
  if (!isLeaf && enters(trail, name)) return { kind: "moved" };
  const target = linkTarget(trail.current, name);
  if (target !== null) return { kind: "link", target };
  if (isLeaf) return { kind: "leaf" };
  // It may have been a link before and be a directory now.
  if (!mayBeDirectory(trail.current, name)) throw notFound(shown, "a part of it is no directory");
  return { kind: "again" };
}

function enters(trail: Trail, name: BytePath): boolean {
  try {
    trail.push(trail.current.enter(name));
    return true;
  } catch (thrown) {
    if (["ENOTDIR", "ELOOP"].includes(errnoCode(thrown))) return false;
    throw thrown;
  }
}

/** The content of the link, read in the held directory; null if there is no link. */
function linkTarget(directory: Directory, name: BytePath): BytePath | null {
  try {
    return readlinkSync(directory.at(name), { encoding: "latin1" });
  } catch (thrown) {
    if (["EINVAL", "ENOENT"].includes(errnoCode(thrown))) return null;
    throw thrown;
  }
}

function isLink({ directory, name }: Target): boolean {
  return linkTarget(directory, name) !== null;
}

function mayBeDirectory(directory: Directory, name: BytePath): boolean {
  try {
    directory.enter(name)[Symbol.dispose]();
    return true;
  } catch (thrown) {
    // It may be a link again.
    return errnoCode(thrown) !== "ENOTDIR" || linkTarget(directory, name) !== null;
  }
}

export function joinPath(directory: BytePath, name: BytePath): BytePath {
  return directory === "/" ? `/${name}` : `${directory}/${name}`;
}

function directoryAt(descriptor: number, path: BytePath, release: () => void): Directory {
  const self = `/proc/self/fd/${descriptor}`;
  const at = (name: BytePath): Buffer => bytePath(self, name);
  return {
    descriptor,
    path,
    // The slash makes the system enter the held directory.
    self: Buffer.from(`${self}/`),
    at,
    enter: (name) => {
      const inner = openSync(at(name), ENTER);
      return directoryAt(inner, name === "." ? path : joinPath(path, name), closing(inner));
    },
    open: (name) => openRegular(at(name), joinPath(path, name)),
    [Symbol.dispose]: release,
  };
}
