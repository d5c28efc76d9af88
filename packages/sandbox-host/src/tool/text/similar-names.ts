import { readdirSync } from "node:fs";
import { FileFailure } from "../../file/failure.ts";
import { joinPath, type Walk } from "../../file/walk.ts";
import { shownPath } from "./shown-path.ts";

const MAX_NAMES = 3;
const MAX_CANDIDATES = 2000;
/** Longer names are compared by their beginnings. */
const MAX_COMPARED = 64;

/** A sentence with names of the same directory that are similar to a missing one; empty if there are none. */
export function suggestNames(walk: Walk, path: string): string {
  try {
    using target = walk.find(path);
    const names = readdirSync(target.directory.self, "latin1").slice(0, MAX_CANDIDATES);
    const similar = names
      .map((name) => ({ name, distance: distanceOf(target.name.toLowerCase(), name.toLowerCase()) }))
      .filter(({ name, distance }) => distance <= Math.max(2, Math.floor(name.length / 3)))
      .toSorted((a, b) => a.distance - b.distance)
      .slice(0, MAX_NAMES)
      .map(({ name }) => shownPath(joinPath(target.directory.path, name)));
    return similar.length === 0 ? "" : ` Did you mean ${similar.join(" or ")}?`;
  } catch (thrown) {
    // The directory is missing too, or is going away.
    if (thrown instanceof FileFailure || (thrown instanceof Error && "code" in thrown)) return "";
    throw thrown;
  }
}

/** How many letters have to be put in, taken out or changed to make one word the other. */
function distanceOf(fromWhole: string, toWhole: string): number {
  const [from, to] = [fromWhole.slice(0, MAX_COMPARED), toWhole.slice(0, MAX_COMPARED)];
  let row = Array.from({ length: to.length + 1 }, (_, index) => index);
  for (let i = 1; i <= from.length; i += 1) {
    const next = [i];
    for (let j = 1; j <= to.length; j += 1) {
      const changed = (row[j - 1] ?? 0) + (from[i - 1] === to[j - 1] ? 0 : 1);
      next.push(Math.min(changed, (row[j] ?? 0) + 1, (next[j - 1] ?? 0) + 1));
    }
    row = next;
  }
  return row[to.length] ?? 0;
}
