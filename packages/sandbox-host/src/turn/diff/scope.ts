import { ancestorsOf, type BytePath, toBytePath } from "./byte-path.ts";

/** What a comparison looks at below a directory that is on both sides: everything, or what candidates lead to. */
export interface Scope {
  /** Whether to look at all names in the directory. */
  isListed(directory: BytePath): boolean;
  /** Whether to look at this path, which is in a directory that is not listed, or to go down into it. */
  leadsOn(path: BytePath): boolean;
}

export const EVERYTHING: Scope = { isListed: () => true, leadsOn: () => true };

/**
 * The candidates, and for a directory among them every name in it: entries that come and go change their directory,
 * even if a backend does not name them themselves, as with further links to one file. Below a directory with a name that
 * the backend could not spell, everything is compared.
 */
export function scopeOf(candidates: readonly string[]): Scope {
  const named = new Set<BytePath>();
  const above = new Set<BytePath>();
  const whole = new Set<BytePath>();
  for (const candidate of candidates) {
    const path = toBytePath(spelled(candidate));
    if (spelled(candidate) !== candidate) whole.add(path);
    named.add(path);
    for (const directory of ancestorsOf(path)) above.add(directory);
  }
  const isWhole = (path: BytePath): boolean =>
    whole.size > 0 && (whole.has(path) || ancestorsOf(path).some((directory) => whole.has(directory)));
  return {
    isListed: (directory) => named.has(directory) || isWhole(directory),
    leadsOn: (path) => named.has(path) || above.has(path) || isWhole(path),
  };
}

/** The candidate, or the deepest directory above it whose whole name is known. */
function spelled(candidate: string): string {
  const unknown = candidate.indexOf("\u{fffd}");
  if (unknown < 0) return candidate;
  return candidate.slice(0, candidate.lastIndexOf("/", unknown)) || "/";
}
