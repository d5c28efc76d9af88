import { isDeepStrictEqual } from "node:util";
import type { InstanceRow } from "./store.ts";

/**
 * What putting `row` over `stored` does: the row to write, `put` if this very put has been made before (its answer was
 * lost), or `changed` if another one has written since.
 */
export function decidePut(stored: InstanceRow | undefined, row: InstanceRow): InstanceRow | "put" | "changed" {
  const next = { ...row, version: row.version + 1 };
  if ((stored?.version ?? 0) === row.version) return next;
  return isDeepStrictEqual(stored, next) ? "put" : "changed";
}
