import type { BaseParts } from "./compose-base.ts";
import type { LifecycleParts } from "./compose-lifecycle.ts";
import type { SessionParts } from "./compose-sessions.ts";
import { createForkSession } from "./turn/fork.ts";
import { createCompleteTurn } from "./turn/complete.ts";
import { createDeleteSnapshot } from "./turn/delete.ts";
import { createDiffSnapshots } from "./turn/diff/diff-snapshots.ts";
import { createDropSnapshot } from "./turn/drop.ts";
import { createListSnapshots } from "./turn/list-snapshots.ts";
import { createRestoreSnapshot } from "./turn/restore.ts";
import { Retention } from "./turn/retain.ts";
import { createRollbackSession } from "./turn/rollback.ts";
import { Sealing } from "./turn/seal.ts";
import { createNamedSnapshot } from "./turn/snapshot.ts";
import { createSnapshotTool } from "./turn/tool-snapshot.ts";

/** Turns and snapshots, with what is made from them. */
export function composeTurns(parts: BaseParts & SessionParts & LifecycleParts) {
  const { config, storage } = parts;
  const dropSnapshot = createDropSnapshot(parts);
  const sealing = new Sealing(parts);
  const retention = new Retention({ ...parts, dropSnapshot, maxSnapshots: config.maxSnapshotsPerSession });
  const turns = { ...parts, sealing, retention };
  const hasToolSnapshots = config.perToolSnapshots && storage.capabilities.snapshots === "supported";
  return {
    snapshotTool: hasToolSnapshots ? createSnapshotTool(turns) : undefined,
    completeTurn: createCompleteTurn(turns),
    listSnapshots: createListSnapshots(parts),
    createSnapshot: createNamedSnapshot(turns),
    deleteSnapshot: createDeleteSnapshot({ ...turns, dropSnapshot }),
    restoreSnapshot: createRestoreSnapshot(turns),
    diffSnapshots: createDiffSnapshots({ ...parts, nodePath: process.execPath }),
    rollbackSession: createRollbackSession({ ...turns, toolTimeoutMs: config.toolTimeout }),
    forkSession: createForkSession(turns),
  };
}
