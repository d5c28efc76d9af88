import { lstatSync } from "node:fs";
import { parseGlob } from "@turnbox/core";
import type { Walk } from "../../file/walk.ts";
import { toText } from "../../file/path.ts";
import { counted, done, type TextOutcome } from "./outcome.ts";
import { shortPath, shownPath } from "./shown-path.ts";
import { orGone, treeOf, type TreeEntry } from "./tree.ts";

export interface ListDirRequest {
  readonly path: string;
  /** 1: what is in the directory itself. */
  readonly depth: number;
}

export const MAX_LISTED = 1000;
/** The count of entries that are not shown ends here. */
const MAX_COUNTED = 100_000;

/** What is in a directory, one entry a line: directories end in a slash, files have their size. */
export function listDir(walk: Walk, { path, depth }: ListDirRequest): TextOutcome {
  using directory = walk.directory(path);
  const lines: string[] = [];
  let total = 0;
  for (const entry of treeOf(directory, ({ relative }) => levelOf(relative) < depth)) {
    total += 1;
    if (lines.length < MAX_LISTED) lines.push(describe(entry));
    if (total >= MAX_COUNTED) break;
  }
  const name = shownPath(directory.path);
  if (total === 0) return done(`${name} is empty.`);
  const left = total - lines.length;
  const more = total >= MAX_COUNTED ? "or more " : "";
  return done(
    left === 0 ? lines.join("\n") : `${lines.join("\n")}\n[${counted(left, "entry", "entries")} ${more}not shown]`,
  );
}

function levelOf(relative: string): number {
  return relative.split("/").length;
}

function describe({ kind, name, relative, parent }: TreeEntry): string {
  const shown = toText(relative);
  switch (kind) {
    case "directory":
      return `${shown}/`;
    case "link":
      return `${shown} (link)`;
    case "other":
      return `${shown} (special)`;
    case "file": {
      const stats = orGone(() => lstatSync(parent.at(name)));
      return stats === null ? shown : `${shown} (${counted(stats.size, "byte")})`;
    }
  }
}

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
