import type { Snapshot as WireSnapshot, SnapshotKind as WireKind } from "@turnbox/protocol/turnbox/host/v1/snapshot_pb";
import { DEFAULT_TIMEOUT_MS } from "../link/default-timeouts.ts";
import type { OpenSandbox } from "../link/sandbox-link.ts";

const PAGE_SIZE = 1000;

/** All snapshots of a sandbox, or those of some kinds, oldest first. */
export async function listSnapshots(
  { host, sessionId }: Pick<OpenSandbox, "host" | "sessionId">,
  { signal, kinds = [] }: { readonly signal: AbortSignal; readonly kinds?: readonly WireKind[] },
): Promise<readonly WireSnapshot[]> {
  const snapshots: WireSnapshot[] = [];
  let pageToken = "";
  do {
    const page = await host.snapshots.listSnapshots(
      { sessionId, page: { pageSize: PAGE_SIZE, pageToken }, kinds: [...kinds] },
      { signal, timeoutMs: DEFAULT_TIMEOUT_MS.read },
    );
    snapshots.push(...page.snapshots);
    pageToken = page.page?.nextPageToken ?? "";
  } while (pageToken !== "");
  return snapshots;
}
