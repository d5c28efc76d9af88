import type { Session as WireSession } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import type { Session } from "../session/session.ts";
import type { SessionUsage } from "../session/session-usage.ts";
import { toWireSession } from "./convert.ts";

/** What methods need that return a session. */
export interface ShowsSessions {
  readonly usage: Pick<SessionUsage, "of">;
}

/** A session with the facts that have to be asked for. The space it takes may have been asked for before. */
export async function show({ usage }: ShowsSessions, session: Session, space?: Promise<number>): Promise<WireSession> {
  return toWireSession(session, await usage.of(session, space));
}
