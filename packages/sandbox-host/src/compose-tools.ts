import type { BaseParts } from "./compose-base.ts";
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
import type { SnapshotTool } from "./turn/tool-snapshot.ts";

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
