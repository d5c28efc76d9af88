import path from "node:path";
import { isTest, packageOf, resolveImport } from "./sources.mjs";

const MOST_LINES = 40;

/**
 * Small files that a neighbour in their folder could hold: one importer, in the same folder. A barrel (`index.ts`) imports for
 * others, and so do the tests of a file.
 */
export function singleUseFiles(sources) {
  const product = sources.filter(({ file }) => packageOf(file) !== undefined && !isTest(file));
  const importers = new Map();
  for (const source of product) {
    for (const specifier of source.imports()) {
      const target = resolveImport(source.file, specifier);
      if (target === undefined) continue;
      if (!importers.has(target)) importers.set(target, new Set());
      importers.get(target).add(source.file);
    }
  }
  return product
    .filter(({ lines }) => lines <= MOST_LINES)
    .flatMap(({ file, lines }) => {
      const [only, ...others] = importers.get(file) ?? [];
      if (only === undefined || others.length > 0) return [];
      if (path.posix.dirname(only) !== path.posix.dirname(file) || path.posix.basename(only) === "index.ts") return [];
      return [{ at: file, what: `${lines} lines, for ${path.posix.basename(only)}` }];
    });
}
