import type { Charset } from "@turnbox/client/internal";

/** A snapshot as the tree needs it. `label` is what stands behind the shape, on the same line. */
export interface TreeNode {
  readonly id: string;
  /** Absent, or an id that is not among the nodes, for a snapshot whose parent is gone. */
  readonly parentId?: string;
  readonly createdAtMs: number;
  readonly label: string;
}

/** What the tree is drawn with. */
export interface TreeShapes {
  readonly node: string;
  readonly head: string;
  /** Where a child leaves its parent's column, and what stands left of it further down; both of the same width. */
  readonly branch: string;
  readonly beside: string;
}

export const TREE_SHAPES: Readonly<Record<Charset, TreeShapes>> = {
  ascii: { node: "*", head: "*", branch: "|-", beside: "| " },
  "utf-8": { node: "○", head: "●", branch: "├─", beside: "│ " },
};

/**
 * Draws one line per snapshot, parents above children. The line that leads to `headId` stays in its column; every other
 * child opens a branch to the right, above the continuation:
 *
 *     *    first
 *     |-*  left behind
 *     *    went on here
 *
 * Nodes come oldest first, which decides among those of the same time.
 */
export function drawTurnTree(
  nodes: readonly TreeNode[],
  headId: string | undefined,
  shapes: TreeShapes = TREE_SHAPES.ascii,
): string {
  const known = new Map(nodes.map((node) => [node.id, node]));
  const children = new Map<string, TreeNode[]>();
  const roots: TreeNode[] = [];
  for (const node of [...nodes].sort((a, b) => a.createdAtMs - b.createdAtMs)) {
    const parent = node.parentId === undefined ? undefined : known.get(node.parentId);
    if (parent === undefined) roots.push(node);
    else children.set(parent.id, [...(children.get(parent.id) ?? []), node]);
  }
  const trunk = pathTo(headId, known);
  const lines = layOut(trunkLast(roots, trunk), { children, trunk, headId, shapes });
  const width = Math.max(0, ...lines.map(({ shape }) => shape.length));
  return lines.map(({ shape, node }) => `${shape.padEnd(width)}  ${node.label}`.trimEnd().concat("\n")).join("");
}

interface Line {
  readonly shape: string;
  readonly node: TreeNode;
}

interface Chain {
  readonly start: TreeNode;
  /** What stands left of the first node of the chain, and of all others. */
  readonly firstPrefix: string;
  readonly prefix: string;
}

interface Tree {
  readonly children: ReadonlyMap<string, readonly TreeNode[]>;
  readonly trunk: ReadonlySet<string>;
  readonly headId: string | undefined;
  readonly shapes: TreeShapes;
}

/** Works on a stack: a chain may be as long as a session has turns. */
function layOut(roots: readonly TreeNode[], tree: Tree): Line[] {
  const { node, head, branch: leave, beside } = tree.shapes;
  const lines: Line[] = [];
  const pending: Chain[] = roots.map((start) => ({ start, firstPrefix: "", prefix: "" })).reverse();
  for (let chain = pending.pop(); chain !== undefined; chain = pending.pop()) {
    const shape = `${chain.firstPrefix}${chain.start.id === tree.headId ? head : node}`;
    lines.push({ shape, node: chain.start });
    const next = trunkLast(tree.children.get(chain.start.id) ?? [], tree.trunk);
    const { prefix } = chain;
    const continuation = next.at(-1);
    if (continuation !== undefined) pending.push({ start: continuation, firstPrefix: prefix, prefix });
    for (const branch of next.slice(0, -1).reverse()) {
      pending.push({ start: branch, firstPrefix: `${prefix}${leave}`, prefix: `${prefix}${beside}` });
    }
  }
  return lines;
}

/** The ids from the root to the head. */
function pathTo(headId: string | undefined, known: ReadonlyMap<string, TreeNode>): ReadonlySet<string> {
  const path = new Set<string>();
  for (let id = headId; id !== undefined && !path.has(id); id = known.get(id)?.parentId) path.add(id);
  return path;
}

/** Oldest first, and the one that leads to the head at the end; without a head the youngest is the last. */
function trunkLast(siblings: readonly TreeNode[], trunk: ReadonlySet<string>): TreeNode[] {
  return [...siblings.filter(({ id }) => !trunk.has(id)), ...siblings.filter(({ id }) => trunk.has(id))];
}
