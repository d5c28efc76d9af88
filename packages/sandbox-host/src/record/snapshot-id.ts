import { randomToken } from "@turnbox/core";
import type { Records } from "./records.ts";

const PREFIX = "snap-";

/** What users see of a snapshot; opaque, about 100 random bits. */
export function newSnapshotId(): string {
  return `${PREFIX}${randomToken(20)}`;
}

/** Whether a text could be the id of a snapshot; only the records know whether it is. */
export function mayBeSnapshotId(text: string): boolean {
  return text.startsWith(PREFIX);
}

/** A name in the storage that is unique in the pool for all time, even if an earlier operation crashed half-way. */
export async function nextSnapshotName(records: Records): Promise<string> {
  const number = await records.call("nextNumber", "snapshot");
  return `s${number.toString().padStart(10, "0")}`;
}
