import type { Call } from "@turnbox/core";
import type { Activity } from "../session/activity.ts";
import { assertGeneration } from "../session/generation.ts";
import { assertActive } from "../session/phase.ts";
import type { Session } from "../session/session.ts";

/** The conditions of a change of files. */
export interface ChangeOptions {
  /** The name of the caller's method, for refusals. */
  readonly operation: string;
  readonly expectedGeneration: number | undefined;
  readonly signal: AbortSignal;
}

/**
 * Changes a session's files under the conditions of a tool call: in an active session only, in the generation that the
 * caller expects, and inside the gate, so that a rollback or a pause waits for the change or kills it.
 */
export type ChangeFiles = <Result>(
  session: Session,
  options: ChangeOptions,
  work: (call: Call) => Promise<Result>,
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

/** Files can be read in active and in paused sessions. */
export function assertReadable(session: Session, operation: string): void {
  if (session.row.phase.kind !== "paused") assertActive(session.row.phase, operation);
}
