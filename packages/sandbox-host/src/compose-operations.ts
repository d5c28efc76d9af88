import type { BaseParts } from "./compose-base.ts";
import type { LifecycleParts } from "./compose-lifecycle.ts";
import type { SessionParts } from "./compose-sessions.ts";
import { createChangeFiles } from "./file/change-files.ts";
import { KeyedChanges } from "./file/keyed-changes.ts";
import { createSessionFiles } from "./file/session-files.ts";
import { ResultFiles } from "./record/result-files.ts";
import { createExecuteTool } from "./tool/execute.ts";
import { Ledger } from "./tool/ledger.ts";
import { createRunTool } from "./tool/run-tool.ts";
import { createRunningCalls } from "./tool/running-calls.ts";
import { StoredResults } from "./tool/stored-results.ts";
import { createToolCalls } from "./tool/tool-calls.ts";
import { createCompleteTurn } from "./turn/complete.ts";
import { createDeleteSnapshot } from "./turn/delete.ts";
import { createDiffSnapshots } from "./turn/diff/diff-snapshots.ts";
import { createDropSnapshot } from "./turn/drop.ts";
import { createForkSession } from "./turn/fork.ts";
import { createListSnapshots } from "./turn/list-snapshots.ts";
import { createRestoreSnapshot } from "./turn/restore.ts";
import { Retention } from "./turn/retain.ts";
import { createRollbackSession } from "./turn/rollback.ts";
import { Sealing } from "./turn/seal.ts";
import { createNamedSnapshot } from "./turn/snapshot.ts";
import { createSnapshotTool } from "./turn/tool-snapshot.ts";
import type { SnapshotTool } from "./turn/tool-snapshot.ts";

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

/** Tool calls and the files of sessions. */
export function composeTools(parts: BaseParts & SessionParts & { readonly snapshotTool: SnapshotTool | undefined }) {
  const { config, dataSpace, records, recordsPath, outputs, activity } = parts;
  const files = createSessionFiles(parts);
  const changeFiles = createChangeFiles({ activity });
  const runTool = createRunTool({ ...parts, files, toolTimeoutMs: config.toolTimeout, keepBytes: config.toolOutput });
  const results = new StoredResults({
    records,
    files: new ResultFiles(recordsPath),
    bounds: { sessionBytes: config.toolResultSession, hostBytes: config.toolResultTotal },
  });
  const calls = { ledger: new Ledger({ ...parts, results }), outputs, running: createRunningCalls() };
  const assertRoom = (): void => {
    dataSpace.assertRoom();
  };
  return {
    files,
    fileChanges: new KeyedChanges({ ...parts, files, changeFiles }),
    results,
    executeTool: createExecuteTool({ ...calls, runTool, activity, snapshotTool: parts.snapshotTool, assertRoom }),
    toolCalls: createToolCalls(calls),
  };
}
