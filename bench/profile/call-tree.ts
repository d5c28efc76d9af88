/** What V8 writes: a tree of calls, and which of its nodes was seen at each sample. */
export interface CpuProfile {
  readonly nodes: readonly ProfileNode[];
  readonly samples: readonly number[];
  /** Microseconds before each sample. */
  readonly timeDeltas: readonly number[];
}

interface ProfileNode {
  readonly id: number;
  readonly callFrame: { readonly functionName: string; readonly url: string };
  readonly children?: readonly number[];
}

/** A function as it was called from one place, with what it called, the longest first. */
export interface CallTree {
  readonly name: string;
  /** Itself and what it called. */
  readonly totalUs: number;
  readonly children: readonly CallTree[];
}

interface Growing {
  totalUs: number;
  readonly children: Map<string, Growing>;
}

const IDLE = new Set(["(idle)", "(root)"]);

/** The time in which the process worked; calls of one name from one place are one. */
export function toCallTree({ nodes, samples, timeDeltas }: CpuProfile): CallTree {
  const byId = new Map(nodes.map((node) => [node.id, node]));
  const parents = new Map(nodes.flatMap(({ id, children = [] }) => children.map((child) => [child, id] as const)));
  const root: Growing = { totalUs: 0, children: new Map() };
  samples.forEach((id, index) => {
    const names = stackOf(id, byId, parents);
    const us = Math.max(0, timeDeltas[index] ?? 0);
    if (names.length === 0) return;
    let at = root;
    at.totalUs += us;
    for (const name of names) {
      const next = at.children.get(name) ?? { totalUs: 0, children: new Map() };
      at.children.set(name, next);
      at = next;
      at.totalUs += us;
    }
  });
  return freeze("all", root);
}

/** Names from the outermost call inwards; none where the process had nothing to do. */
function stackOf(
  id: number,
  byId: ReadonlyMap<number, ProfileNode>,
  parents: ReadonlyMap<number, number>,
): readonly string[] {
  const names: string[] = [];
  for (let at: number | undefined = id; at !== undefined; at = parents.get(at)) {
    const frame = byId.get(at)?.callFrame;
    if (frame !== undefined && !IDLE.has(frame.functionName)) names.unshift(nameOf(frame));
  }
  return names;
}

/** `function package/file`, the same whatever directory the repository is in. */
function nameOf({ functionName, url }: ProfileNode["callFrame"]): string {
  const name = functionName === "" ? "(anonymous)" : functionName;
  const file = url.replace(/^node:/, "").replace(/[?#].*$/, "");
  const place =
    /.*\/node_modules\/((?:@[^/]+\/)?[^/]+)\/.*?([^/]+)$/.exec(file) ?? /.*\/packages\/([^/]+)\/.*?([^/]+)$/.exec(file);
  const where =
    place === null
      ? url.startsWith("node:")
        ? file
        : (file.split("/").pop() ?? "")
      : `${place[1] ?? ""}/${place[2] ?? ""}`;
  return where === "" ? name : `${name} ${where}`;
}

function freeze(name: string, { totalUs, children }: Growing): CallTree {
  const frozen = [...children].map(([child, growing]) => freeze(child, growing));
  return {
    name,
    totalUs,
    children: frozen.toSorted((a, b) => b.totalUs - a.totalUs || (a.name < b.name ? -1 : 1)),
  };
}
