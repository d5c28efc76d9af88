import type { Session as WireSession } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import type { Session } from "../session/session.ts";
import { toWireSession } from "./convert.ts";
import type { Host } from "./host.ts";

/** How long the answer to a request waits for facts about space. */
export const USAGE_TIMEOUT_MS = 5_000;

/** A session with the facts that have to be asked for. */
export async function show(host: Host, session: Session): Promise<WireSession> {
  const [snapshots, spaceUsedBytes] = await Promise.all([
    host.records.call("listSnapshots", session.row.token),
    host.space.of(session),
  ]);
  return toWireSession(session, { snapshotCount: snapshots.length, spaceUsedBytes });
}
