import type { Entry } from "../entry.ts";
import type { OperationContext } from "../operation.ts";
import { makeParents, writeWhole } from "../write-whole.ts";

export interface WriteInput {
  readonly path: string;
  /** Permission bits; null means those of the file that is there, or 0644. */
  readonly mode: number | null;
  readonly parents: "make" | "expect";
}

/** Writes the job's body to a file, whole. */
export function writeFile({ walk, body }: OperationContext, { path, mode, parents }: WriteInput): Entry {
  if (parents === "make") makeParents(walk, path);
  using target = walk.find(path);
  return writeWhole(target, body(), { mode: mode ?? undefined });
}
