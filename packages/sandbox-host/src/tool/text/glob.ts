import type { Walk } from "../../file/walk.ts";
import { toText } from "../../file/path.ts";
import { parseGlob } from "./glob-pattern.ts";
import { counted, done, type TextOutcome } from "./outcome.ts";
import { shortPath } from "./place.ts";
import { treeOf } from "./tree.ts";

export interface GlobRequest {
  readonly pattern: string;
  readonly path: string;
  readonly maxResults: number;
}

/** Paths that match a pattern, sorted. Directories match too and end in a slash. */
export function glob(walk: Walk, { pattern, path, maxResults }: GlobRequest): TextOutcome {
  const wanted = parseGlob(pattern);
  using top = walk.directory(path);
  const base = toText(top.path === "/" ? "" : top.path);
  const found: string[] = [];
  let total = 0;
  for (const { relative, kind } of treeOf(top, (entry) => wanted.mayHold(toText(entry.relative)))) {
    const shown = toText(relative);
    if (!wanted.matches(shown)) continue;
    total += 1;
    if (found.length >= maxResults) continue;
    found.push(`${shortPath(`${base === "/" ? "" : base}/${shown}`)}${kind === "directory" ? "/" : ""}`);
  }
  if (total === 0) return done("Nothing matches.");
  const left = total - found.length;
  return done(left === 0 ? found.join("\n") : `${found.join("\n")}\n[${counted(left, "more path")} not shown]`);
}
