import type { Snapshot } from "@turnbox/protocol/turnbox/host/v1/snapshot_pb";
import { CALL_MS } from "../deadline.ts";
import type { OpenSandbox } from "./resolve-sandbox.ts";

const PAGE_SIZE = 1000;

/** All snapshots of a sandbox, oldest first. */
export async function listSnapshots(
  { host, sessionId }: OpenSandbox,
  { signal }: { readonly signal: AbortSignal },
): Promise<readonly Snapshot[]> {
  const snapshots: Snapshot[] = [];
  let pageToken = "";
  do {
    const page = await host.snapshots.listSnapshots(
      { sessionId, page: { pageSize: PAGE_SIZE, pageToken } },
      { signal, timeoutMs: CALL_MS.read },
    );
    snapshots.push(...page.snapshots);
    pageToken = page.page?.nextPageToken ?? "";
  } while (pageToken !== "");
  return snapshots;
}
