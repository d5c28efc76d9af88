import { invalidArgument } from "@turnbox/client/internal";
import type { SyncDirection } from "./sync-types.ts";

/** What a machine makes for itself, and makes again. */
export const BUILT_IN_EXCLUDES: readonly string[] = [
  "node_modules",
  "dist",
  "build",
  "target",
  ".cache",
  "__pycache__",
  ".pytest_cache",
  ".mypy_cache",
  ".ruff_cache",
  ".gradle",
  ".next",
  ".turbo",
  ".venv",
];

const MAX_PATTERNS = 256;
const MAX_PATTERN_LENGTH = 256;
/** Git runs what these say, on the machine where git is called. */
const GIT_RUNS = new Set(["hooks", "config", "config.worktree"]);

/** Which paths are not brought over. */
export interface Excludes {
  /** The patterns as they were given, with the built-in ones. */
  readonly patterns: readonly string[];
  /** Whether a path below the root is left out, itself or with a directory that it is in. */
  covers(path: string): boolean;
}

/**
 * A pattern without a slash is a name at any depth; one with a slash is a path from the root. `*` and `?` stay within a
 * name, `**` does not. A directory that is left out is left out with all that is in it. What comes from a runtime never
 * brings git's hooks and configuration along: they are commands that are not reviewed.
 */
export function createExcludes(direction: SyncDirection, patterns: readonly string[] = []): Excludes {
  if (patterns.length > MAX_PATTERNS) throw invalidArgument("excludePatterns", `must be at most ${MAX_PATTERNS}`);
  const all = [...BUILT_IN_EXCLUDES, ...patterns];
  const tests = all.map(toTest);
  const isLeftOut = (names: readonly string[]): boolean => {
    const name = names.at(-1) ?? "";
    const path = names.join("/");
    return tests.some((test) => test(name, path)) || (direction === "from_runtime" && isRunByGit(names));
  };
  return {
    patterns: all,
    covers: (path) => {
      const names = path.split("/").filter((one) => one !== "" && one !== ".");
      return names.some((_, at) => isLeftOut(names.slice(0, at + 1)));
    },
  };
}

/** Filesystems may take `.GIT` for `.git`. */
function isRunByGit(names: readonly string[]): boolean {
  const lower = names.map((name) => name.toLowerCase());
  const git = lower.indexOf(".git");
  return git >= 0 && lower.slice(git + 1).some((name) => GIT_RUNS.has(name));
}

function toTest(pattern: string): (name: string, path: string) => boolean {
  if (pattern.length === 0 || pattern.length > MAX_PATTERN_LENGTH || pattern.includes("\0")) {
    throw invalidArgument("excludePatterns", `must be 1 to ${MAX_PATTERN_LENGTH} characters each, without NUL`);
  }
  const trimmed = pattern.replace(/\/+$/, "");
  const expression = toExpression(trimmed.replace(/^\/+/, ""));
  return trimmed.includes("/") ? (_name, path) => expression.test(path) : (name) => expression.test(name);
}

function toExpression(pattern: string): RegExp {
  const source = pattern.replace(/\*\*\/|\*+|\?|[\\^$.+()[\]{}|]/g, (token) => {
    if (token === "**/") return "(?:[^/]+/)*";
    if (token === "*") return "[^/]*";
    if (token === "?") return "[^/]";
    return token.startsWith("*") ? ".*" : `\\${token}`;
  });
  return new RegExp(`^${source}$`, "su");
}
