import { escapeText } from "./escape.ts";

/** A pattern of paths: `*` and `?` stay within a name, `**` spans directories, `[a-z]` and `{a,b}` choose. */
export interface GlobPattern {
  /** A path without a slash at its beginning. */
  matches(path: string): boolean;
  /** Whether a directory may hold something that matches. */
  mayHold(directory: string): boolean;
}

const MAX_ALTERNATIVES = 100;

/** Throws a `GlobError` that says what is wrong. */
export class GlobError extends Error {
  override readonly name = "GlobError";
}

export function parseGlob(pattern: string): GlobPattern {
  const alternatives = expandBraces(pattern).map(parseParts);
  return {
    matches: (path) => alternatives.some((parts) => matchParts(parts, path.split("/"))),
    mayHold: (directory) => alternatives.some((parts) => holds(parts, directory.split("/"))),
  };
}

/** One name of a path, or any number of directories. */
type Part = RegExp | "**";

function parseParts(pattern: string): readonly Part[] {
  const names = pattern.split("/").filter((name) => name !== "" && name !== ".");
  if (names.length === 0) throw new GlobError("the pattern names nothing");
  if (names.includes("..")) throw new GlobError("the pattern must not contain ..; give the directory as path");
  return names.map((name) => (name === "**" ? name : parseName(name)));
}

/** A name that begins with a dot matches only where the pattern begins with one: hidden things are asked for. */
function parseName(name: string): RegExp {
  let source = name.startsWith(".") ? "" : "(?!\\.)";
  for (let at = 0; at < name.length; at += 1) {
    const character = name.charAt(at);
    const end = character === "[" ? name.indexOf("]", at + 2) : -1;
    if (end > 0) {
      source += classOf(name.slice(at + 1, end));
      at = end;
    } else if (character === "*") source += name.charAt(at - 1) === "*" ? "" : ".*";
    else if (character === "?") source += ".";
    else source += escapeText(character);
  }
  try {
    return new RegExp(`^${source}$`, "su");
  } catch {
    throw new GlobError(`${JSON.stringify(name)} is not a pattern`);
  }
}

function classOf(inside: string): string {
  const isNegated = inside.startsWith("!") || inside.startsWith("^");
  const characters = (isNegated ? inside.slice(1) : inside).replaceAll(/[\\\][^]/g, "\\$&");
  return `[${isNegated ? "^" : ""}${characters}]`;
}

function matchParts(parts: readonly Part[], names: readonly string[]): boolean {
  // Which parts may come next, name by name: no pattern makes this slow.
  let next = skipSpans(parts, new Set([0]));
  for (const name of names) next = step(parts, next, name);
  return next.has(parts.length);
}

function holds(parts: readonly Part[], names: readonly string[]): boolean {
  let next = skipSpans(parts, new Set([0]));
  for (const name of names) next = step(parts, next, name);
  return [...next].some((index) => index < parts.length);
}

function step(parts: readonly Part[], at: ReadonlySet<number>, name: string): ReadonlySet<number> {
  const next = new Set<number>();
  for (const index of at) {
    const part = parts[index];
    if (part === "**") {
      if (!name.startsWith(".")) next.add(index);
    } else if (part?.test(name) === true) next.add(index + 1);
  }
  return skipSpans(parts, next);
}

/** `**` may span nothing. */
function skipSpans(parts: readonly Part[], at: ReadonlySet<number>): ReadonlySet<number> {
  const all = new Set<number>();
  for (const start of at) {
    all.add(start);
    for (let index = start; parts[index] === "**"; index += 1) all.add(index + 1);
  }
  return all;
}

/** `a{b,c}d` as `abd` and `acd`; braces may be nested. */
function expandBraces(pattern: string): readonly string[] {
  let pending = [pattern];
  const done: string[] = [];
  while (pending.length > 0) {
    const next: string[] = [];
    for (const one of pending) {
      const group = /\{([^{}]*,[^{}]*)\}/.exec(one);
      if (group === null) done.push(one);
      else {
        const after = one.slice(group.index + group[0].length);
        for (const choice of (group[1] ?? "").split(",")) next.push(one.slice(0, group.index) + choice + after);
      }
    }
    if (next.length + done.length > MAX_ALTERNATIVES)
      throw new GlobError(`the pattern has more than ${MAX_ALTERNATIVES} alternatives`);
    pending = next;
  }
  return done;
}
