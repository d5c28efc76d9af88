import type { Activity } from "../session/activity.ts";
import { assertGeneration } from "../session/generation.ts";
import { assertActive } from "../session/phase.ts";
import type { Session } from "../session/session.ts";

/** What a change of files is made under. */
export interface ChangeOptions {
  /** The caller's name of it, for refusals. */
  readonly operation: string;
  readonly expectedGeneration: number | undefined;
  readonly signal: AbortSignal;
}

/**
 * Does what changes a session's files as tool calls do it: in an active session only, in the generation that the caller
 * means, and with a place in the gate, so that a rollback or a pause waits for it or kills it.
 */
export type ChangeFiles = <Result>(
  session: Session,
  options: ChangeOptions,
  work: (call: { readonly signal: AbortSignal }) => Promise<Result>,
) => Promise<Result>;

export function createChangeFiles({ activity }: { readonly activity: Activity }): ChangeFiles {
  return async (session, { operation, expectedGeneration, signal }, work) => {
    assertActive(session.row.phase, operation);
    assertGeneration(session, expectedGeneration);
    using _permit = session.gate.enter();
    activity.touch(session);
    try {
      return await work({ signal: AbortSignal.any([signal, session.lifetime.signal, session.interrupt]) });
    } finally {
      activity.touch(session);
    }
  };
}

/** Files are read in active and in paused sessions. */
export function assertReadable(session: Session, operation: string): void {
  if (session.row.phase.kind !== "paused") assertActive(session.row.phase, operation);
}
