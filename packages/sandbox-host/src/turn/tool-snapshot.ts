import type { Logger } from "pino";
import type { Records } from "../record/records.ts";
import type { Intents } from "../session/intent.ts";
import type { Session } from "../session/session.ts";
import type { Retention } from "./retain.ts";
import type { Sealing } from "./seal.ts";

/**
 * Takes the snapshot after a tool call, on a host that takes one for each. Returns its id, or the id of the last snapshot
 * if the call wrote nothing. Null if none could be taken: the call has had its effect, so a failure here does not fail it.
 */
export type SnapshotTool = (
  session: Session,
  call: { readonly callId: string; readonly generation: number; readonly signal: AbortSignal },
) => Promise<string | null>;

export function createSnapshotTool(deps: {
  readonly records: Records;
  readonly intents: Intents;
  readonly sealing: Sealing;
  readonly retention: Retention;
  readonly assertRoom: (call: { readonly signal: AbortSignal }) => Promise<void>;
  readonly log: Logger;
}): SnapshotTool {
  const { records, intents, sealing, retention, log } = deps;
  return async (session, { callId, generation, signal }) => {
    try {
      return await session.serial.run(async () => {
        const { row } = session;
        // After a rollback or a pause that came in between, the files are not those that the call left.
        if (row.phase.kind !== "active" || row.generation !== generation) return null;
        await intents.settleLeftover(session);
        await deps.assertRoom({ signal });
        const last = row.parentSnapshot === null ? null : await records.call("findSnapshot", row.parentSnapshot);
        const snapshot = await sealing.describe(session, { kind: "tool", toolCallId: callId });
        const unless = last === null ? undefined : { since: last };
        const { sealed } = await sealing.seal(session, snapshot, { unless }, { signal });
        if (sealed) retention.enforce(session);
        return sealed ? snapshot.id : (last?.id ?? null);
      });
    } catch (err) {
      log.warn({ err, sessionId: session.row.id }, "no snapshot after a tool call");
      return null;
    }
  };
}
