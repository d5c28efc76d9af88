import { type Change, ChangeKind } from "@turnbox/protocol/turnbox/host/v1/snapshot_pb";
import type { HostCalls } from "../host-call.ts";
import { DEFAULT_TIMEOUT_MS } from "../link/default-timeouts.ts";
import type { Sandbox } from "../sandbox.ts";
import { toNumber, toWireCount } from "../wire/number.ts";
import { toOptional } from "../wire/text.ts";
import { snapshotIdOf } from "./sandbox-turns.ts";
import type { FileChange } from "./turn-types.ts";

const PAGE_SIZE = 1000;

/** A kind of change that a newer host knows is a change all the same. */
const KINDS: ReadonlyMap<ChangeKind, FileChange["kind"]> = new Map([
  [ChangeKind.ADDED, "added"],
  [ChangeKind.REMOVED, "removed"],
  [ChangeKind.MODIFIED, "modified"],
  [ChangeKind.RENAMED, "renamed"],
  [ChangeKind.TYPE_CHANGED, "type_changed"],
]);

export function createDiff(calls: HostCalls): Sandbox["diff"] {
  const { sessionId } = calls;
  return async ({ from, to, text = false, maxTextBytes, path = "", ...options }) => {
    const question = {
      sessionId,
      fromSnapshotId: await snapshotIdOf(calls, from, options),
      toSnapshotId: to === undefined ? "" : await snapshotIdOf(calls, to, options),
      text,
      maxTextBytes: toWireCount("maxTextBytes", maxTextBytes),
      path,
    };
    const changes: FileChange[] = [];
    let pageToken = "";
    do {
      const page = await calls.call({ options, timeoutMs: DEFAULT_TIMEOUT_MS.change }, ({ host }, { signal }) =>
        host.snapshots.diffSnapshots({ ...question, page: { pageSize: PAGE_SIZE, pageToken } }, { signal }),
      );
      changes.push(...page.changes.map(toFileChange));
      pageToken = page.page?.nextPageToken ?? "";
    } while (pageToken !== "");
    return changes;
  };
}

const toFileChange = (change: Change): FileChange => ({
  kind: KINDS.get(change.kind) ?? "modified",
  path: change.path,
  oldPath: toOptional(change.oldPath),
  oldSizeBytes: toNumber(change.oldSizeBytes),
  newSizeBytes: toNumber(change.newSizeBytes),
  binary: change.binary,
  unifiedDiff: toOptional(change.unifiedDiff),
  diffTruncated: change.diffTruncated,
});
