import type { Session } from "../session/session.ts";
import type { Ledger, LedgerAnswer } from "./ledger.ts";
import type { OutputJournal } from "./output-journal.ts";
import type { ToolOutputs } from "./outputs.ts";
import type { RunningCalls } from "./running-calls.ts";

/** What can be done with calls that were made before. `TOOL_CALL_NOT_FOUND` where there is none of this id. */
export interface ToolCalls {
  /** Joins a call, in flight or ended, and tells of its output as far as it is kept. */
  attach(session: Session, callId: string, tell: (journal: OutputJournal) => void): Promise<LedgerAnswer>;
  /** Kills a call with everything it started and waits for its end; answers whether it was running until now. */
  cancel(session: Session, callId: string, call: { readonly signal: AbortSignal }): Promise<boolean>;
}

export function createToolCalls(deps: {
  readonly ledger: Ledger;
  readonly outputs: ToolOutputs;
  readonly running: RunningCalls;
}): ToolCalls {
  const { ledger, outputs, running } = deps;
  return {
    attach: async (session, callId, tell) => {
      using _following = outputs.follow(session, callId, tell);
      const answer = await ledger.recall(session, callId);
      const ended = outputs.find(session, callId);
      if (ended !== undefined) tell(ended);
      return answer;
    },
    cancel: async (session, callId, call) => {
      if (await running.cancel(session, callId, call)) return true;
      await ledger.assertKnown(session, callId);
      return false;
    },
  };
}
