import type { Logger } from "pino";
import type { Records } from "../record/records.ts";
import type { IntentRow } from "../record/row.ts";
import type { Session } from "./session.ts";

/** How an operation that was cut off is brought to an end: finished or undone, as its kind demands. */
export type SettleIntent = (session: Session, intent: IntentRow) => Promise<void>;

/**
 * Multi-step operations of a session: the intent is durable before the first step and ends with the commit. One that
 * fails is settled at once, by the same code that settles it after a crash.
 */
export interface Intents {
  /**
   * Runs the steps of an operation inside the session's serial order; the work's own commit ends the intent. What has no
   * effect may begin at once, all else waits for `begun`: then the intent is durable. On a failure after that the intent is
   * settled and the failure passed on; if even that fails, the next operation settles it first.
   */
  run<Result>(session: Session, intent: IntentRow, work: (begun: Promise<void>) => Promise<Result>): Promise<Result>;
  /** Ends what an earlier operation left behind; call it first in the serial order. */
  settleLeftover(session: Session): Promise<void>;
}

export function createIntents(deps: {
  readonly records: Records;
  readonly settle: SettleIntent;
  readonly log: Logger;
}): Intents {
  const { records, settle, log } = deps;
  return {
    run: async (session, intent, work) => {
      const begun = records.call("beginIntent", intent).then(() => undefined);
      try {
        return await work(begun);
      } catch (thrown) {
        await begun;
        try {
          await settle(session, intent);
        } catch (err) {
          session.leftover = intent;
          log.error({ err, sessionId: session.row.id, intent: intent.kind }, "failed operation not undone yet");
        }
        throw thrown;
      }
    },
    settleLeftover: async (session) => {
      if (session.leftover === null) return;
      await settle(session, session.leftover);
      session.leftover = null;
    },
  };
}
