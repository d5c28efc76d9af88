import type { Session as WireSession } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import type { Session } from "../session/session.ts";
import { toWireSession } from "./convert.ts";
import type { Host } from "./host.ts";

/** How long the answer to a request waits for facts about space. */
export const USAGE_TIMEOUT_MS = 5_000;

/** A session with the facts that have to be asked for. The space it takes may have been asked for before. */
export async function show(host: Host, session: Session, space = host.space.of(session)): Promise<WireSession> {
  const [snapshotCount, spaceUsedBytes] = await Promise.all([
    host.records.call("countSnapshotsOf", session.row.token),
    space,
  ]);
  return toWireSession(session, { snapshotCount, spaceUsedBytes });
}
