import { getPriority, setPriority } from "node:os";
import { runInNewContext } from "node:vm";
import { escapeText } from "@turnbox/core";
import { requiredTexts } from "./required-texts.ts";

export interface LineSearch {
  /** False only if no line of these bytes matches; quick. */
  mayMatch(bytes: Buffer): boolean;
  /** The lines of a text that match, in order. Throws if that takes too long. */
  find(text: string): readonly LineRange[];
}

/** Where a line begins and ends in a text. */
export interface LineRange {
  readonly start: number;
  /** Without the line's end. */
  readonly end: number;
}

/** Says what is wrong with a pattern. */
export class PatternError extends Error {
  override readonly name = "PatternError";
}

/** A pattern that looks around may see the next line, so each line is matched by itself. */
const LOOKS_AROUND = /\(\?<?[=!]/;
/** For one text, of at most 4 MiB: several times what a slow pattern takes that behaves well. */
const MAX_FIND_MS = 10_000;
const POSIX_CLASS = /\[:\w+:\]/;

/** A search for lines that match; each line counts by itself, whatever its neighbours are. */
export function parseSearch({
  pattern,
  syntax,
}: {
  readonly pattern: string;
  readonly syntax: "regex" | "literal";
}): LineSearch {
  if (syntax === "literal") return createSearch(escapeText(pattern), "");
  if (POSIX_CLASS.test(pattern))
    throw new PatternError("classes like [[:space:]] are not known here; use \\s, \\d, \\w or [a-z]");
  const isCaseless = pattern.startsWith("(?i)");
  try {
    return createSearch(isCaseless ? pattern.slice(4) : pattern, isCaseless ? "i" : "");
  } catch (thrown) {
    throw new PatternError(
      `the pattern is not a regular expression: ${thrown instanceof Error ? thrown.message : "it is not valid"}. Set literal to search for the text as it is.`,
    );
  }
}

function createSearch(source: string, flags: "" | "i"): LineSearch {
  const one = new RegExp(source, flags);
  const all = new RegExp(source, `${flags}gm`);
  const mayLookAround = LOOKS_AROUND.test(source);
  const required = flags === "" ? (requiredTexts(source)?.map((text) => Buffer.from(text, "latin1")) ?? null) : null;
  const find = (text: string): readonly LineRange[] => {
    const found: LineRange[] = [];
    const untilMs = performance.now() + MAX_FIND_MS;
    let at = 0;
    while (at < text.length) {
      if (performance.now() > untilMs) throw tooSlow();
      const start = mayLookAround ? at : nextCandidate(all, text, at);
      if (start < 0) break;
      const { end, next } = lineAt(text, start);
      if (one.test(text.slice(start, end))) found.push({ start, end });
      at = next;
    }
    return found;
  };
  return {
    find: isLinear(source, flags) ? find : (text) => inTime(() => find(text)),
    mayMatch: (bytes) => required?.some((text) => bytes.includes(text)) ?? true,
  };
}

/** Whether the engine of this process matches it in linear time (see worker-process.ts); the flag `l` fails otherwise. */
function isLinear(source: string, flags: string): boolean {
  try {
    return new RegExp(source, `${flags}l`) instanceof RegExp;
  } catch {
    return false;
  }
}

/** Work that may have to be ended runs behind other processes. */
const LOW_PRIORITY = 10;

/**
 * Does synchronous work and ends it after so long, also in the middle of a match of a regular expression, which nothing else
 * ends but the end of the process. Then no `finally` of the work runs, so what it holds is not released. Costs a thread. The
 * process has a low priority meanwhile.
 */
function inTime<Result>(work: () => Result): Result {
  const priority = getPriority();
  try {
    setPriority(Math.max(priority, LOW_PRIORITY));
    return runInNewContext("work()", { work }, { timeout: MAX_FIND_MS }) as Result;
  } catch (thrown) {
    if (thrown instanceof Error && "code" in thrown && thrown.code === "ERR_SCRIPT_EXECUTION_TIMEOUT") throw tooSlow();
    throw thrown;
  } finally {
    setPriority(priority);
  }
}

function tooSlow(): PatternError {
  return new PatternError(
    `the pattern takes longer than ${MAX_FIND_MS / 1000} s in one file. Use a simpler one: without (?i), look-around, back references, counts above 16 and repeated groups that repeat something themselves`,
  );
}

/** The start of the next line in which a match begins. It may reach into the next line, so the line is looked at alone. */
function nextCandidate(all: RegExp, text: string, from: number): number {
  all.lastIndex = from;
  const match = all.exec(text);
  // After the last line's end there is no further line.
  if (match === null || (match.index === text.length && text.endsWith("\n"))) return -1;
  return match.index === 0 ? 0 : text.lastIndexOf("\n", match.index - 1) + 1;
}

function lineAt(text: string, start: number): { readonly end: number; readonly next: number } {
  const newLine = text.indexOf("\n", start);
  const end = newLine < 0 ? text.length : newLine;
  return { end: end > start && text[end - 1] === "\r" ? end - 1 : end, next: end + 1 };
}
