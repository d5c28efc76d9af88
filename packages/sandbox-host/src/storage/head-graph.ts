/** A head among those of its session. Snapshots go by their names: a name stays when a promotion moves the snapshot. */
export interface HeadNode {
  readonly generation: number;
  /** The snapshot of this session that it was cloned from; absent if it came from a base or from another session. */
  readonly origin?: string;
  /** The snapshots that hang on it, oldest first. */
  readonly snapshots: readonly string[];
}

/** What depends on what within one session. */
export interface HeadGraph {
  readonly heads: readonly HeadNode[];
  /** Snapshots that something outside the session was cloned from. */
  readonly pinned: ReadonlySet<string>;
}

/** One change of the backend that loses nothing that is needed. */
export type GraphStep =
  /** The head goes; nothing hangs on its snapshots, if it has any. */
  | { readonly kind: "destroy-head"; readonly generation: number }
  | { readonly kind: "destroy-snapshot"; readonly snapshot: string; readonly generation: number }
  /** The head takes over the snapshots of the one it was cloned from, up to its origin. */
  | { readonly kind: "promote"; readonly generation: number; readonly over: number };

/**
 * The next step towards a session without heads that only lead to others; undefined if there is none. A head without
 * snapshots goes. One whose last snapshot another head was cloned from hands all of them to that one, first to one that
 * leads to the kept head.
 */
export function nextCollectStep(
  graph: HeadGraph,
  keep: { readonly kept: number; readonly busy: ReadonlySet<number> },
): GraphStep | undefined {
  const candidates = graph.heads.filter(({ generation }) => generation !== keep.kept && !keep.busy.has(generation));
  const empty = candidates.find(({ snapshots }) => snapshots.length === 0);
  if (empty !== undefined) return { kind: "destroy-head", generation: empty.generation };
  return nextPromotion(graph, candidates, ancestryOf(graph, keep.kept));
}

/** The next step towards a session that holds only what the pinned snapshots need; undefined if there is none. */
export function nextShrinkStep(graph: HeadGraph): GraphStep | undefined {
  const origins = new Set(graph.heads.map(({ origin }) => origin));
  const isFree = (snapshot: string): boolean => !origins.has(snapshot) && !graph.pinned.has(snapshot);
  const free = graph.heads.find(({ snapshots }) => snapshots.every(isFree));
  if (free !== undefined) return { kind: "destroy-head", generation: free.generation };
  for (const { generation, snapshots } of graph.heads) {
    const snapshot = snapshots.find(isFree);
    if (snapshot !== undefined) return { kind: "destroy-snapshot", snapshot, generation };
  }
  return nextPromotion(graph, graph.heads, new Set());
}

/** The graph after the step. */
export function afterStep(graph: HeadGraph, step: GraphStep): HeadGraph {
  const { heads, pinned } = graph;
  switch (step.kind) {
    case "destroy-head":
      return { pinned, heads: heads.filter(({ generation }) => generation !== step.generation) };
    case "destroy-snapshot": {
      const without = (node: HeadNode): HeadNode => ({
        ...node,
        snapshots: node.snapshots.filter((name) => name !== step.snapshot),
      });
      return { pinned, heads: heads.map(without) };
    }
    case "promote":
      return { pinned, heads: promoted(heads, step) };
  }
}

function promoted(heads: readonly HeadNode[], step: { readonly generation: number; readonly over: number }) {
  const heir = heads.find(({ generation }) => generation === step.generation);
  const old = heads.find(({ generation }) => generation === step.over);
  if (heir?.origin === undefined || old === undefined) return heads;
  const end = old.snapshots.indexOf(heir.origin) + 1;
  const inherited: HeadNode = {
    generation: heir.generation,
    snapshots: [...old.snapshots.slice(0, end), ...heir.snapshots],
    ...(old.origin === undefined ? {} : { origin: old.origin }),
  };
  const left: HeadNode = { generation: old.generation, origin: heir.origin, snapshots: old.snapshots.slice(end) };
  return heads.map((node) => (node === heir ? inherited : node === old ? left : node));
}

function nextPromotion(
  { heads }: HeadGraph,
  candidates: readonly HeadNode[],
  preferred: ReadonlySet<number>,
): GraphStep | undefined {
  for (const { generation: over, snapshots } of candidates) {
    const last = snapshots.at(-1);
    const heirs = last === undefined ? [] : heads.filter(({ origin }) => origin === last);
    const heir = heirs.find(({ generation }) => preferred.has(generation)) ?? heirs[0];
    if (heir !== undefined) return { kind: "promote", generation: heir.generation, over };
  }
  return undefined;
}

/** The head and all that it came from. */
function ancestryOf({ heads }: HeadGraph, generation: number): ReadonlySet<number> {
  const line = new Set<number>();
  let node = heads.find((head) => head.generation === generation);
  while (node !== undefined && !line.has(node.generation)) {
    line.add(node.generation);
    const { origin } = node;
    node = origin === undefined ? undefined : heads.find(({ snapshots }) => snapshots.includes(origin));
  }
  return line;
}
