import { escapeText } from "./escape-text.ts";

/** A pattern of paths: `*` and `?` stay within a name, `**` spans directories, `[a-z]` and `{a,b}` choose. */
export interface GlobPattern {
  /** A path without a slash at its beginning. */
  matches(path: string): boolean;
  /** Whether a directory may hold something that matches. */
  mayHold(directory: string): boolean;
}

const MAX_ALTERNATIVES = 100;

/** A pattern that is none; the message says why. */
export class GlobError extends Error {
  override readonly name = "GlobError";
}

/** Throws a `GlobError` if it is no pattern. */
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

/** A name that begins with a dot matches only if the pattern begins with one. */
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
  return after(parts, names).includes(parts.length);
}

function holds(parts: readonly Part[], names: readonly string[]): boolean {
  return after(parts, names).some((index) => index < parts.length);
}

/** Which parts may come next after these names, found name by name: no pattern makes this slow. */
function after(parts: readonly Part[], names: readonly string[]): readonly number[] {
  let next = skipSpans(parts, [0]);
  for (const name of names) {
    if (next.length === 0) return next;
    next = step(parts, next, name);
  }
  return next;
}

function step(parts: readonly Part[], at: readonly number[], name: string): readonly number[] {
  const next: number[] = [];
  for (const index of at) {
    const part = parts[index];
    if (part === "**") {
      if (!name.startsWith(".")) next.push(index);
    } else if (part?.test(name) === true) next.push(index + 1);
  }
  return skipSpans(parts, next);
}

/** `**` may span nothing. Comes and goes in order, each part once. */
function skipSpans(parts: readonly Part[], at: readonly number[]): readonly number[] {
  const all: number[] = [];
  for (const start of at) {
    let index = start;
    if (index > (all.at(-1) ?? -1)) all.push(index);
    for (; parts[index] === "**"; index += 1) if (index + 1 > (all.at(-1) ?? -1)) all.push(index + 1);
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
