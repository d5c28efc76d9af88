import type { Session } from "../session/session.ts";
import type { Ledger, LedgerAnswer } from "./ledger.ts";
import type { OutputJournal } from "./output/journal.ts";
import type { OutputStore } from "./output/store.ts";
import type { RunningCalls } from "./running-calls.ts";

/** Operations on calls that were made before. `TOOL_CALL_NOT_FOUND` if there is none of this id. */
export interface ToolCalls {
  /** Joins a call, in flight or ended; `onOutput` gets the journal of its output as far as it is kept. */
  attach(session: Session, callId: string, onOutput: (journal: OutputJournal) => void): Promise<LedgerAnswer>;
  /** Kills a call with everything it started and waits for its end; returns whether it was running until now. */
  cancel(session: Session, callId: string, call: { readonly signal: AbortSignal }): Promise<boolean>;
}

export function createToolCalls(deps: {
  readonly ledger: Ledger;
  readonly outputs: OutputStore;
  readonly running: RunningCalls;
}): ToolCalls {
  const { ledger, outputs, running } = deps;
  return {
    attach: async (session, callId, onOutput) => {
      using _following = outputs.follow(session, callId, onOutput);
      const answer = await ledger.recall(session, callId);
      const ended = outputs.find(session, callId);
      if (ended !== undefined) onOutput(ended);
      return answer;
    },
    cancel: async (session, callId, call) => {
      if (await running.cancel(session, callId, call)) return true;
      await ledger.assertKnown(session, callId);
      return false;
    },
  };
}
