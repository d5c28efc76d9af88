import type { SnapshotRow } from "../../record/row.ts";

/**
 * The time until which two points of a session have the same past: when the latest snapshot that both continue from was
 * taken, or else when the session was made. `null` is a point without a snapshot behind it.
 */
export function commonPastMs(
  snapshots: readonly SnapshotRow[],
  points: { readonly from: string | null; readonly to: string | null },
  sessionCreatedAtMs: number,
): number {
  const byId = new Map(snapshots.map((row) => [row.id, row]));
  const lineOf = (id: string | null): readonly SnapshotRow[] => {
    const line: SnapshotRow[] = [];
    for (let row = byId.get(id ?? ""); row !== undefined && line.length < byId.size; row = byId.get(row.parent ?? ""))
      line.push(row);
    return line;
  };
  const behindFrom = new Set(lineOf(points.from));
  return lineOf(points.to).find((row) => behindFrom.has(row))?.createdAtMs ?? sessionCreatedAtMs;
}
