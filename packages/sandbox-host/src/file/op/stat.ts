import { type Entry, entryAt } from "../entry.ts";
import { toFileFailure } from "../failure.ts";
import type { OperationContext } from "../operation.ts";

/** Describes what is at a path; a link at its end is not followed. */
export function stat({ walk }: OperationContext, { path }: { readonly path: string }): Entry {
  using target = walk.find(path, { leaf: "keep" });
  try {
    return entryAt(target);
  } catch (thrown) {
    throw toFileFailure(thrown, path);
  }
}
