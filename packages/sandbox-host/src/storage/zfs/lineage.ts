import { SandboxError } from "@turnbox/core";

/** A filesystem and the snapshot it was cloned from. */
export interface ClonedFilesystem {
  readonly name: string;
  readonly origin: string;
}

/** What descends from what below one dataset. */
export interface Lineage {
  /** The dataset itself and all filesystems below it. */
  readonly filesystems: readonly ClonedFilesystem[];
  /** How many filesystems were cloned from each snapshot that has clones, wherever in the pool they are. */
  readonly clones: ReadonlyMap<string, number>;
}

/** From rows of `name, origin, numclones`. */
export function toLineage(rows: readonly (readonly string[])[]): Lineage {
  const filesystems: ClonedFilesystem[] = [];
  const clones = new Map<string, number>();
  for (const [name = "", origin = "-", count = "-"] of rows) {
    if (!name.includes("@")) filesystems.push({ name, origin });
    else if (count !== "0" && count !== "-") clones.set(name, Number(count));
  }
  return { filesystems, clones };
}

/** The snapshots that have more clones than those which are known. */
export function clonedElsewhere(
  { clones }: Lineage,
  known: readonly { readonly origin?: string | undefined }[],
): readonly string[] {
  const ours = Map.groupBy(known, ({ origin }) => origin);
  return [...clones].flatMap(([snapshot, count]) => (count > (ours.get(snapshot)?.length ?? 0) ? [snapshot] : []));
}

/** Heads in an order in which each is free of clones when its turn comes. */
export function dependantsFirst(heads: readonly ClonedFilesystem[]): readonly ClonedFilesystem[] {
  const left = new Set(heads);
  const order: ClonedFilesystem[] = [];
  while (left.size > 0) {
    const free = [...left].filter((head) => ![...left].some(({ origin }) => origin.startsWith(`${head.name}@`)));
    if (free.length === 0) throw new SandboxError("INTERNAL", "heads depend on one another in a circle");
    for (const head of free) {
      order.push(head);
      left.delete(head);
    }
  }
  return order;
}
