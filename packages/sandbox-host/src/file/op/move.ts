import { linkSync, lstatSync, mkdirSync, renameSync, rmdirSync, type Stats, unlinkSync } from "node:fs";
import { type Entry, entryAt } from "../entry.ts";
import { errnoCode, invalidField, refused, toFileFailure } from "../failure.ts";
import type { OperationContext } from "../operation.ts";
import type { Target } from "../walk.ts";

export interface MoveInput {
  readonly source: string;
  readonly destination: string;
  readonly existing: "replace" | "refuse";
}

/** Moves a file, directory or link; links are not followed. */
export function move({ walk }: OperationContext, { source, destination, existing }: MoveInput): Entry {
  using from = walk.find(source, { field: "source", leaf: "keep" });
  using to = walk.find(destination, { field: "destination", leaf: "keep" });
  if (from.name === "." || to.name === ".") throw refused("/", "the root cannot be moved or replaced");
  try {
    const stats = lstatSync(from.at);
    if (existing === "replace") renameSync(from.at, to.at);
    else moveToNew(from, to, stats);
  } catch (thrown) {
    const code = errnoCode(thrown);
    if (code === "EEXIST") throw invalidField("destination", "something is there already");
    throw toFileFailure(thrown, code === "ENOENT" ? source : destination);
  }
  return entryAt(to);
}

/** Node has no rename that refuses to replace; a name that can be taken only once has the same effect. */
function moveToNew(from: Target, to: Target, stats: Stats): void {
  if (stats.isDirectory()) {
    mkdirSync(to.at);
    try {
      renameSync(from.at, to.at);
    } catch (thrown) {
      rmdirSync(to.at);
      throw thrown;
    }
    return;
  }
  linkSync(from.at, to.at);
  unlinkSync(from.at);
}
