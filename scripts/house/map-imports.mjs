import path from "node:path";
import { findCycles } from "./cycles.mjs";
import { isTest, packageOf, resolveImport } from "./sources.mjs";

/** A row of a package whose rooms have no order of their own holds at most so many boxes. */
const MOST_IN_ROW = 6;

const ABOVE = "(above)";
const BELOW = "(below)";

/** The product files that count: a package's `index.ts` only hands on what it exports, so it is no part of the order. */
const isCounted = ({ file }) =>
  packageOf(file) !== undefined && !isTest(file) && !/^packages\/[^/]+\/src\/index\.ts$/.test(file);

/** The room of a file, or the file itself if it stands beside the rooms. */
function nodeOf(file) {
  const [, , inner] = /^packages\/([^/]+)\/src\/(.+)$/.exec(file) ?? [];
  if (inner === undefined) return undefined;
  return inner.includes("/") ? inner.split("/")[0] : path.posix.basename(inner, ".ts");
}

const packageNamed = (specifier) => (specifier === "turnbox" ? "cli" : /^@turnbox\/([^/]+)/.exec(specifier)?.[1]);

function addTo(map, key, value) {
  if (!map.has(key)) map.set(key, new Set());
  map.get(key).add(value);
}

/** What each package imports of others, and what the rooms and files beside them import of one another: all of it, types too. */
function readImports(sources, names) {
  const packages = new Map(names.map((name) => [name, new Set()]));
  const inside = new Map(names.map((name) => [name, new Map()]));
  for (const { file, imports } of sources.map((source) => ({ file: source.file, imports: source.imports() }))) {
    const owner = packageOf(file);
    const [nodes, from] = [inside.get(owner), nodeOf(file)];
    if (!nodes.has(from)) nodes.set(from, new Set());
    for (const specifier of imports) {
      const target = resolveImport(file, specifier);
      const other = target === undefined ? packageNamed(specifier) : packageOf(target);
      if (other !== undefined && other !== owner) packages.get(owner).add(other);
      if (target === undefined || other !== owner || isTest(target)) continue;
      const to = nodeOf(target);
      if (to !== from && to !== "index") nodes.get(from).add(to);
    }
  }
  return { packages, inside };
}

/** How many steps each node stands above the lowest that it leads to; nodes of a cycle stand side by side. */
function levelsOf(edges) {
  const groups = new Map(findCycles(edges).flatMap((group) => group.map((node) => [node, group])));
  const levels = new Map();
  const levelOf = (node) => {
    const group = groups.get(node) ?? [node];
    if (!levels.has(node)) {
      const below = group.flatMap((one) => [...(edges.get(one) ?? [])]).filter((next) => !group.includes(next));
      const level = below.reduce((most, next) => Math.max(most, levelOf(next) + 1), 0);
      for (const one of group) levels.set(one, level);
    }
    return levels.get(node);
  };
  for (const node of [...edges.keys()].sort()) levelOf(node);
  return levels;
}

/** Maps the nodes of a graph to others; what then leads to itself is gone. */
function renameNodes(edges, rename) {
  const renamed = new Map();
  for (const [from, targets] of edges) {
    if (!renamed.has(rename(from))) renamed.set(rename(from), new Set());
    for (const to of targets) if (rename(to) !== rename(from)) addTo(renamed, rename(from), rename(to));
  }
  return renamed;
}

/** The files beside the rooms as one box above or below them, or as one for each level of a package without an order. */
function groupFiles(edges, { rows, beside }, isRoom) {
  const levels = levelsOf(edges);
  const groupOf = (file) => {
    if (rows !== undefined) return beside === "above" ? ABOVE : BELOW;
    return `(level ${levels.get(file)})`;
  };
  const files = new Map();
  for (const node of [...edges.keys()].sort()) if (!isRoom(node)) addTo(files, groupOf(node), node);
  return { files, edges: renameNodes(edges, (node) => (isRoom(node) ? node : groupOf(node))) };
}

function rowsOf(edges, { rows }) {
  if (rows !== undefined) {
    const known = [[ABOVE], ...rows, [BELOW]].map((row) => row.filter((node) => edges.has(node)));
    return known.filter((row) => row.length > 0);
  }
  const levels = levelsOf(edges);
  const byLevel = Object.groupBy([...edges.keys()].sort(), (node) => levels.get(node));
  return Object.keys(byLevel)
    .map(Number)
    .sort((a, b) => b - a)
    .flatMap((level) => inParts(byLevel[level]));
}

function inParts(nodes) {
  const count = Math.ceil(nodes.length / MOST_IN_ROW);
  const size = Math.ceil(nodes.length / count);
  return Array.from({ length: count }, (_, index) => nodes.slice(index * size, (index + 1) * size));
}

/** Whether a node leads to another by more than one step, so that their arrow says nothing about the order that others do not say. */
function isImplied(edges, from, to) {
  const seen = new Set([from]);
  const open = [...edges.get(from)].filter((next) => next !== to);
  for (let node = open.pop(); node !== undefined; node = open.pop()) {
    if (node === to) return true;
    if (seen.has(node)) continue;
    seen.add(node);
    open.push(...(edges.get(node) ?? []));
  }
  return false;
}

function arrowsOf(edges) {
  return [...edges.keys()]
    .sort()
    .flatMap((from) => [...edges.get(from)].sort().map((to) => ({ from, to, implied: isImplied(edges, from, to) })));
}

/**
 * The packages and their rooms with the imports that there are, types included: for each package its rows of boxes from the top to the
 * bottom and the arrows between them, and the arrows between packages. A box is a room, or the files beside the rooms.
 */
export function readHouse(sources, rooms) {
  const { packages, inside } = readImports(sources.filter(isCounted), Object.keys(rooms));
  const folders = new Set(sources.flatMap(({ file }) => /^packages\/[^/]+\/src\/[^/]+(?=\/)/.exec(file) ?? []));
  const list = Object.entries(rooms).map(([name, record]) => {
    const isRoom = (node) => folders.has(`packages/${name}/src/${node}`);
    const { files, edges } = groupFiles(inside.get(name), record, isRoom);
    const rows = rowsOf(edges, record).map((row) => row.map((id) => ({ id, files: [...(files.get(id) ?? [])] })));
    return { name, rows, arrows: arrowsOf(edges) };
  });
  return { packages: list, arrows: arrowsOf(packages) };
}
