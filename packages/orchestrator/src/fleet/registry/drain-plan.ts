import type { DrainPlan, InstanceRow } from "../../store/store.ts";

/** The beginning of a drain that waits for its turn: instances of an old image are replaced one at a time. */
export const NOT_BEGUN_MS = Number.MAX_SAFE_INTEGER;

/** The drain that is under way; undefined if there is none, or it still waits for its turn. */
export function begunDrain(row: Pick<InstanceRow, "drain">): DrainPlan | undefined {
  return row.drain === undefined || row.drain.sinceMs === NOT_BEGUN_MS ? undefined : row.drain;
}

/** Whether new sandboxes may go there, as far as the fleet's own wishes go. */
export function isOpen(row: InstanceRow): boolean {
  return row.goal === "running" && row.admission === "open" && begunDrain(row) === undefined;
}
