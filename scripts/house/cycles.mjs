import path from "node:path";
import { isTest, packageOf, resolveImport } from "./sources.mjs";

/** The groups of nodes that reach each other (Tarjan), each of at least two. `edges` maps a node to the set of those it leads to. */
export function findCycles(edges) {
  const order = new Map();
  const low = new Map();
  const stack = [];
  const cycles = [];
  const enter = (node) => {
    order.set(node, order.size);
    low.set(node, order.get(node));
    stack.push(node);
    for (const next of edges.get(node) ?? []) {
      if (!order.has(next)) enter(next);
      if (stack.includes(next)) low.set(node, Math.min(low.get(node), low.get(next)));
    }
    if (low.get(node) !== order.get(node)) return;
    const group = stack.splice(stack.indexOf(node));
    if (group.length > 1) cycles.push(group.sort());
  };
  for (const node of [...edges.keys()].sort()) if (!order.has(node)) enter(node);
  return cycles;
}

/** The imports between files of one package, as pairs of files. Tests may import any room and count for nothing. */
function listEdges(sources) {
  return sources
    .filter(({ file }) => packageOf(file) !== undefined && !isTest(file))
    .flatMap((source) =>
      source
        .imports()
        .map((specifier) => [source.file, resolveImport(source.file, specifier)])
        .filter(([from, to]) => to !== undefined && packageOf(to) === packageOf(from) && !isTest(to)),
    );
}

/** The folders that two files are in below the last folder that holds both; undefined if one is in that folder itself. */
function siblingFolders(from, to) {
  const [a, b] = [path.posix.dirname(from).split("/"), path.posix.dirname(to).split("/")];
  let depth = 0;
  while (a[depth] === b[depth] && depth < a.length && depth < b.length) depth += 1;
  if (depth === a.length || depth === b.length) return undefined;
  return [a.slice(0, depth + 1).join("/"), b.slice(0, depth + 1).join("/")];
}

function graphOf(pairs) {
  const edges = new Map();
  for (const [from, to] of pairs) {
    if (!edges.has(from)) edges.set(from, new Set());
    edges.get(from).add(to);
  }
  return edges;
}

/**
 * Folders that import each other, by values or types, at each level: rooms of a package, and folders within a room. A folder and one
 * below it are one room to each other, so that imports between them count for nothing.
 */
export function folderCycles(sources) {
  const pairs = listEdges(sources).map(([from, to]) => siblingFolders(from, to));
  return findCycles(graphOf(pairs.filter((pair) => pair !== undefined))).flatMap((group) =>
    group.map((folder) => ({ group: packageOf(folder), at: folder, what: `in a cycle of ${group.length} folders` })),
  );
}

/** Files that import each other, by values or types. */
export function fileCycles(sources) {
  return findCycles(graphOf(listEdges(sources))).flatMap((group) =>
    group.map((file) => ({ group: packageOf(file), at: file, what: `in a cycle of ${group.length} files` })),
  );
}
