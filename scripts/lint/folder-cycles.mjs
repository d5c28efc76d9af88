import { readdirSync, readFileSync } from "node:fs";
import path from "node:path";
import ts from "typescript";

const isProduct = (file) => file.endsWith(".ts") && !/\.(test|suite)\.ts$/.test(file);

/** The imports between the product files of a folder, types included: pairs of paths relative to it. */
export function importsIn(folder) {
  const files = readdirSync(folder, { recursive: true }).filter(isProduct);
  return files.flatMap((file) =>
    ts
      .preProcessFile(readFileSync(path.join(folder, file), "utf8"), true, true)
      .importedFiles.filter(({ fileName }) => fileName.startsWith("."))
      .map(({ fileName }) => [file, path.join(path.dirname(file), fileName)]),
  );
}

/** The two folders beside one another that an import leads from and to; undefined if it stays among the files of one. */
function foldersOf([from, to]) {
  const [source, target] = [from, to].map((file) => file.split("/").slice(0, -1));
  const depth = source.findIndex((name, index) => name !== target[index]);
  if (depth < 0 || depth >= target.length) return undefined;
  return [source, target].map((folders) => folders.slice(0, depth + 1).join("/"));
}

/** Groups of folders beside one another of which each leads, by imports, to all others of its group. */
export function findFolderCycles(imports) {
  const next = new Map();
  for (const [from, to] of imports.flatMap((one) => (foldersOf(one) === undefined ? [] : [foldersOf(one)]))) {
    next.set(from, (next.get(from) ?? new Set()).add(to));
  }
  const reached = new Map([...next.keys()].map((folder) => [folder, reachableFrom(folder, next)]));
  const cycles = [...reached].flatMap(([folder, all]) =>
    all.has(folder) ? [[...all].filter((other) => reached.get(other)?.has(folder) === true).sort()] : [],
  );
  return [...new Map(cycles.map((cycle) => [cycle.join(" "), cycle])).values()];
}

function reachableFrom(folder, next) {
  const reached = new Set();
  const open = [folder];
  for (let one = open.pop(); one !== undefined; one = open.pop()) {
    for (const other of next.get(one) ?? []) {
      if (reached.has(other)) continue;
      reached.add(other);
      open.push(other);
    }
  }
  return reached;
}
