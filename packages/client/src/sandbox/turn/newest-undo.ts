import { SandboxError } from "@turnbox/core";
import type { Snapshot } from "./snapshot.ts";

/** A rollback seals the files that it takes away; the newest of these seals is the last rollback's. */
export function newestUndo(snapshots: readonly Snapshot[], { remedy }: { readonly remedy?: string } = {}): Snapshot {
  const undo = snapshots.findLast(({ kind }) => kind === "undo");
  if (undo !== undefined) return undo;
  throw new SandboxError("SNAPSHOT_NOT_FOUND", "there is no rollback to undo, or what it took away is no longer kept", {
    metadata: remedy === undefined ? {} : { remedy },
  });
}
