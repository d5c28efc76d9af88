import { SandboxError } from "@turnbox/core";
import type { Storage } from "../storage.ts";

/** Everything about snapshots, where there are none. */
export const NO_SNAPSHOTS: Pick<
  Storage,
  "seal" | "listSnapshots" | "destroySnapshot" | "isUnchanged" | "openView" | "changedPaths"
> = {
  seal: () => Promise.reject(snapshotsNotAvailable()),
  listSnapshots: () => Promise.reject(snapshotsNotAvailable()),
  destroySnapshot: () => Promise.reject(snapshotsNotAvailable()),
  isUnchanged: () => Promise.reject(snapshotsNotAvailable()),
  openView: () => Promise.reject(snapshotsNotAvailable()),
  changedPaths: () => Promise.reject(snapshotsNotAvailable()),
};

export function snapshotsNotAvailable(): SandboxError {
  return new SandboxError("SNAPSHOTS_NOT_AVAILABLE", "the local-disk storage takes no snapshots");
}
