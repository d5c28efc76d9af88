import { mkdirSync } from "node:fs";
import { type Entry, entryAt } from "../entry.ts";
import { errnoCode, invalidField, toFileFailure } from "../failure.ts";
import type { OperationContext } from "../operation.ts";
import { makeParents } from "../write-whole.ts";

/** Makes a directory. With `make`, missing ones above it are made as well, and an existing directory is no failure. */
export function makeDirectory(
  { walk }: OperationContext,
  { path, parents }: { readonly path: string; readonly parents: "make" | "expect" },
): Entry {
  if (parents === "make") makeParents(walk, path);
  using target = walk.find(path);
  try {
    mkdirSync(target.at);
  } catch (thrown) {
    if (errnoCode(thrown) !== "EEXIST") throw toFileFailure(thrown, path);
    const entry = entryAt(target);
    if (parents !== "make" || entry.type !== "directory") throw invalidField("path", "something is there already");
    return entry;
  }
  return entryAt(target);
}
