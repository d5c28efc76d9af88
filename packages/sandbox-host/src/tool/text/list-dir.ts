import { lstatSync } from "node:fs";
import type { Walk } from "../../file/walk.ts";
import { toText } from "../../file/path.ts";
import { counted, done, type TextOutcome } from "./outcome.ts";
import { shownPlace } from "./place.ts";
import { orGone, treeOf, type TreeEntry } from "./tree.ts";

export interface ListDirRequest {
  readonly path: string;
  /** 1: what is in the directory itself. */
  readonly depth: number;
}

export const MAX_LISTED = 1000;
/** No more is looked at to count what is left out. */
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
  const name = shownPlace(directory.path);
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
