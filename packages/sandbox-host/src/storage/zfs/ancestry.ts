import { checkSnapshot, snapshotNotFound } from "../names.ts";
import type { SnapshotRef } from "../storage.ts";
import type { Dataset } from "./datasets.ts";
import { filesystemOf } from "./layout.ts";
import type { ZfsPool } from "./zfs-pool.ts";

/** Two snapshots that follow one another: on one filesystem, or the origin of a filesystem and a snapshot on it. */
export interface Segment {
  readonly from: string;
  readonly to: string;
}

/** Two snapshots, looked up. */
export interface Ancestry {
  readonly from: Dataset;
  readonly to: Dataset;
  /** The way from one to the other, the latest part first; undefined if the second does not come after the first. */
  readonly segments: readonly Segment[] | undefined;
}

export async function readAncestry(
  { datasets, layout }: ZfsPool,
  { from, to }: { readonly from: SnapshotRef; readonly to: SnapshotRef },
  signal: AbortSignal,
): Promise<Ancestry> {
  checkSnapshot(from);
  checkSnapshot(to);
  const tokens = [...new Set([from.token, to.token])];
  const listed = await Promise.all(tokens.map((token) => datasets.list(layout.session(token), signal)));
  const byName = new Map(listed.flat().map((dataset) => [dataset.name, dataset]));
  const find = ({ token, name }: SnapshotRef): Dataset => {
    const found = [...byName.values()].find(
      (dataset) => dataset.name.startsWith(`${layout.session(token)}/`) && dataset.name.endsWith(`@${name}`),
    );
    if (found === undefined) throw snapshotNotFound();
    return found;
  };
  const [first, last] = [find(from), find(to)];
  return { from: first, to: last, segments: segmentsBetween(byName, first, last) };
}

/** Follows origins back from the later snapshot. */
export function segmentsBetween(
  byName: ReadonlyMap<string, Dataset>,
  from: Dataset,
  to: Dataset,
): readonly Segment[] | undefined {
  const segments: Segment[] = [];
  let at: Dataset | undefined = to;
  while (at !== undefined && filesystemOf(at.name) !== filesystemOf(from.name)) {
    const origin: string | undefined = byName.get(filesystemOf(at.name))?.origin;
    if (origin !== undefined) segments.push({ from: origin, to: at.name });
    at = origin === undefined ? undefined : byName.get(origin);
  }
  if (at === undefined || at.createdTxg < from.createdTxg) return undefined;
  return at.name === from.name ? segments : [...segments, { from: from.name, to: at.name }];
}
