import { SandboxError } from "@turnbox/core";
import type { FencedCall, InstanceRow, Store } from "../../store/store.ts";

const TRIES = 10;

/**
 * Changes a row as it is now on record, again if another writer was faster. `change` returns undefined if nothing is
 * to be done. Returns the row that is on record afterwards, undefined if there is none.
 */
export async function updateRow(
  { store, instanceId, change }: UpdateRow,
  call: FencedCall,
): Promise<InstanceRow | undefined> {
  for (let left = TRIES; left > 0; left -= 1) {
    const row = (await store.listInstances(call)).find((one) => one.instanceId === instanceId);
    if (row === undefined) return undefined;
    const next = change(row);
    if (next === undefined) return row;
    if ((await store.putInstance(next, call)) === "put") return { ...next, version: next.version + 1 };
  }
  throw new SandboxError("OVERLOADED", `the record of ${instanceId} changes too fast`);
}

export interface UpdateRow {
  readonly store: Store;
  readonly instanceId: string;
  readonly change: (row: InstanceRow) => InstanceRow | undefined;
}
