import { invalidArgument } from "@turnbox/client/internal";

/**
 * Whether a path, relative and with slashes, matches: `*` and `?` stay within a name, `**` spans directories, `[a-z]` and
 * `{a,b}` choose. Names that begin with a dot match only if the pattern says the dot.
 */
export function parseGlobPattern(pattern: string): (path: string) => boolean {
  const names = pattern.split("/").filter((name) => name !== "" && name !== ".");
  if (names.length === 0) throw invalidArgument("params.pattern", "names nothing");
  if (names.includes("..")) throw invalidArgument("params.pattern", "must not contain ..; give the directory as path");
  const source = names.map((name, index) => sourceOfName(name, index === names.length - 1)).join("");
  try {
    const expression = new RegExp(`^${source}$`, "su");
    return (path) => expression.test(path);
  } catch {
    throw invalidArgument("params.pattern", `${JSON.stringify(pattern)} is not a pattern`);
  }
}

const VISIBLE = "(?!\\.)[^/]+";

function sourceOfName(name: string, isLast: boolean): string {
  if (name === "**") return isLast ? `${VISIBLE}(?:/${VISIBLE})*` : `(?:${VISIBLE}/)*`;
  return sourceOf(name, name.startsWith(".") ? "" : "(?!\\.)") + (isLast ? "" : "/");
}

function sourceOf(name: string, start: string): string {
  let source = start;
  let depth = 0;
  for (let at = 0; at < name.length; at += 1) {
    const character = name.charAt(at);
    const end = character === "[" ? name.indexOf("]", at + 2) : -1;
    if (end > 0) {
      source += classOf(name.slice(at + 1, end));
      at = end;
      continue;
    }
    if (character === "{") depth += 1;
    if (character === "}") depth -= 1;
    source +=
      SOURCE_OF.get(character) ?? (character === "," && depth > 0 ? "|" : character.replace(/[$()+./\\[\]^|]/, "\\$&"));
  }
  return source;
}

const SOURCE_OF: ReadonlyMap<string, string> = new Map([
  ["*", "[^/]*"],
  ["?", "[^/]"],
  ["{", "(?:"],
  ["}", ")"],
]);

function classOf(inside: string): string {
  const isNegated = inside.startsWith("!") || inside.startsWith("^");
  const characters = (isNegated ? inside.slice(1) : inside).replaceAll(/[\\\][^]/g, "\\$&");
  return `[${isNegated ? "^" : ""}${characters}]`;
}
