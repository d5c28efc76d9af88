import { randomToken } from "@turnbox/core";
import type { Records } from "../record/records.ts";

/** What users see of a snapshot; opaque, about 100 random bits. */
export function newSnapshotId(): string {
  return `snap-${randomToken(20)}`;
}

/** A name in the storage that is unique in the pool for ever, also where an earlier operation crashed half-way. */
export async function nextSnapshotName(records: Records): Promise<string> {
  const number = await records.call("nextNumber", "snapshot");
  return `s${number.toString().padStart(10, "0")}`;
}
