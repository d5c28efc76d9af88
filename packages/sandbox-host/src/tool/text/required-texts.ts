/** Shorter texts are in most files, so that they exclude nothing. */
const MIN_CHARACTERS = 3;
const MAX_TEXTS = 8;
const QUANTIFIER = /^\{\d+(,\d*)?\}/;

/**
 * Texts of which every match of a regular expression contains at least one; null if none are known. Looking for them
 * in bytes is much faster than a match, and most files have none. Only ASCII characters count, which are the same bytes
 * whatever is around them.
 */
export function requiredTexts(source: string): readonly string[] | null {
  const texts = alternativesOf(source).map((runs) => runs.toSorted((a, b) => b.length - a.length)[0] ?? "");
  return texts.length > MAX_TEXTS || texts.some((text) => text.length < MIN_CHARACTERS) ? null : texts;
}

/** For each alternative at the top level, its runs of characters that are all there. What is in groups is passed over. */
function alternativesOf(source: string): readonly (readonly string[])[] {
  const alternatives: string[][] = [];
  let runs: string[] = [];
  let run = "";
  const endRun = (): void => {
    runs.push(run);
    run = "";
  };
  for (let at = 0; at < source.length; ) {
    const part = partAt(source, at);
    at = part.next;
    if (part.kind === "character") {
      run += part.character;
      continue;
    }
    // What may be there any number of times need not be there at all.
    if (part.kind === "quantifier") run = run.slice(0, -1);
    endRun();
    if (part.kind !== "or") continue;
    alternatives.push(runs);
    runs = [];
  }
  endRun();
  return [...alternatives, runs];
}

type Part = { readonly next: number } & (
  | { readonly kind: "character"; readonly character: string }
  | { readonly kind: "quantifier" | "or" | "other" }
);

/** Signs of one character that are no text. */
const SIGNS: Readonly<Record<string, "quantifier" | "or" | "other">> = {
  "*": "quantifier",
  "?": "quantifier",
  "|": "or",
  // What is before it is there at least once.
  "+": "other",
  ".": "other",
  "^": "other",
  $: "other",
};

function partAt(source: string, at: number): Part {
  const first = source.charAt(at);
  const sign = SIGNS[first];
  if (sign !== undefined) return { kind: sign, next: at + 1 };
  switch (first) {
    case "\\":
      return escapeAt(source, at);
    case "[":
      return { kind: "other", next: classEnd(source, at) };
    case "(":
      return { kind: "other", next: groupEnd(source, at) };
    case "{": {
      const length = QUANTIFIER.exec(source.slice(at))?.[0].length;
      return length === undefined ? characterAt(source, at) : { kind: "quantifier", next: at + length };
    }
    default:
      return characterAt(source, at);
  }
}

function characterAt(source: string, at: number): Part {
  const character = source.charAt(at);
  return character < "\u0080" ? { kind: "character", character, next: at + 1 } : { kind: "other", next: at + 1 };
}

/** An escaped sign is itself; letters and digits stand for something else, some with what follows them. */
function escapeAt(source: string, at: number): Part {
  const [whole, letter = ""] = /^\\(x[\da-f]{2}|u[\da-f]{4}|c[a-z]|k<[^>]*>|\d+|[^])/i.exec(source.slice(at)) ?? [];
  const next = at + (whole?.length ?? 1);
  return letter.length === 1 && /[\x21-\x7e]/.test(letter) && !/[a-z0-9]/i.test(letter)
    ? { kind: "character", character: letter, next }
    : { kind: "other", next };
}

function classEnd(source: string, from: number): number {
  for (let at = from + 1; at < source.length; at += 1) {
    if (source[at] === "\\") at += 1;
    else if (source[at] === "]") return at + 1;
  }
  return source.length;
}

function groupEnd(source: string, from: number): number {
  let depth = 0;
  for (let at = from; at < source.length; ) {
    const sign = source.charAt(at);
    if (sign === "(") depth += 1;
    if (sign === ")") depth -= 1;
    if (depth === 0) return at + 1;
    if (sign === "[") at = classEnd(source, at);
    else at += sign === "\\" ? 2 : 1;
  }
  return source.length;
}
