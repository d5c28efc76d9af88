/** A snapshot as the tree needs it. `label` is what stands behind the shape, on the same line. */
export interface TreeNode {
  readonly id: string;
  /** Absent, or an id that is not among the nodes, for a snapshot whose parent is gone. */
  readonly parentId?: string;
  readonly createdAtMs: number;
  readonly label: string;
}

/**
 * Draws one line per snapshot, parents above children. The line that leads to `headId` stays in its column; every other
 * child opens a branch to the right, above the continuation:
 *
 *     *    first
 *     |-*  left behind
 *     *    went on here
 */
export function drawTurnTree(nodes: readonly TreeNode[], headId: string | undefined): string {
  const known = new Map(nodes.map((node) => [node.id, node]));
  const children = new Map<string, TreeNode[]>();
  const roots: TreeNode[] = [];
  for (const node of [...nodes].sort((a, b) => a.createdAtMs - b.createdAtMs || (a.id < b.id ? -1 : 1))) {
    const parent = node.parentId === undefined ? undefined : known.get(node.parentId);
    if (parent === undefined) roots.push(node);
    else children.set(parent.id, [...(children.get(parent.id) ?? []), node]);
  }
  const lines = layOut(trunkLast(roots, pathTo(headId, known)), { children, trunk: pathTo(headId, known) });
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

/** Works on a stack: a chain may be as long as a session has turns. */
function layOut(
  roots: readonly TreeNode[],
  tree: { readonly children: ReadonlyMap<string, readonly TreeNode[]>; readonly trunk: ReadonlySet<string> },
): Line[] {
  const lines: Line[] = [];
  const pending: Chain[] = roots.map((start) => ({ start, firstPrefix: "", prefix: "" })).reverse();
  for (let chain = pending.pop(); chain !== undefined; chain = pending.pop()) {
    lines.push({ shape: `${chain.firstPrefix}*`, node: chain.start });
    const next = trunkLast(tree.children.get(chain.start.id) ?? [], tree.trunk);
    const { prefix } = chain;
    const continuation = next.at(-1);
    if (continuation !== undefined) pending.push({ start: continuation, firstPrefix: prefix, prefix });
    for (const branch of next.slice(0, -1).reverse()) {
      pending.push({ start: branch, firstPrefix: `${prefix}|-`, prefix: `${prefix}| ` });
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
