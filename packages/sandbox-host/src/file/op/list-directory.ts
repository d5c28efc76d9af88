import { type Entry, entryIn } from "../entry.ts";
import { namesIn } from "../names.ts";
import type { OperationContext } from "../operation.ts";
import type { BytePath } from "../path.ts";
import { joinPath } from "../walk.ts";

export interface ListInput {
  readonly path: string;
  /** The name after which the page begins, as bytes in base64; empty for the first page. */
  readonly after: string;
  readonly count: number;
}

export interface ListOutput {
  readonly entries: readonly Entry[];
  /** The last name of this page, as `after` of the next one; null if this is the last page. */
  readonly last: string | null;
}

/** One page of a directory's entries, ordered by the bytes of their names. Memory depends on the page, not on the directory. */
export function listDirectory({ walk }: OperationContext, { path, after, count }: ListInput): ListOutput {
  using directory = walk.directory(path);
  const names = smallest(namesIn(directory), {
    after: Buffer.from(after, "base64").toString("latin1"),
    count: count + 1,
  });
  const page = names.slice(0, count);
  const entries = page
    .map((name) => entryIn(directory, name, joinPath(directory.path, name)))
    .filter((entry) => entry !== null);
  const last = page.at(-1);
  const more = names.length > count && last !== undefined;
  return { entries, last: more ? Buffer.from(last, "latin1").toString("base64") : null };
}

/** The `count` smallest names after one, in their order. */
function smallest(
  names: Iterable<BytePath>,
  { after, count }: { readonly after: BytePath; readonly count: number },
): readonly BytePath[] {
  let kept: BytePath[] = [];
  let bound: BytePath | undefined;
  for (const name of names) {
    if (name <= after || (bound !== undefined && name >= bound)) continue;
    kept.push(name);
    if (kept.length < 4 * count) continue;
    kept = kept.sort(byBytes).slice(0, count);
    bound = kept.at(-1);
  }
  return kept.sort(byBytes).slice(0, count);
}

function byBytes(a: BytePath, b: BytePath): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
