import { createHash } from "node:crypto";
import { type Clock, SandboxError } from "@turnbox/core";
import type { Records } from "../record/records.ts";
import type { KnownCall } from "../record/row.ts";
import type { Session } from "../session/session.ts";
import { answerOf } from "./ledger-answer.ts";
import type { LedgerEntry, ToolResult } from "./result.ts";
import type { StoredResults } from "./stored-results.ts";

/** A call that the ledger knows by its id. */
export interface LedgerCall {
  readonly callId: string;
  /** The call in a canonical form; the same id with another one is a conflict. */
  readonly payload: string;
}

export interface LedgerAnswer {
  readonly result: ToolResult;
  /** Whether it is the stored result of an earlier call, or was run just now. */
  readonly from: "store" | "run";
}

/**
 * Runs effectful calls exactly once: `started` is durable before the effect, the result before the answer. The same id
 * joins the call in flight or gets the stored result. A call whose end was not recorded, and one whose effect may be lost,
 * is `OUTCOME_UNKNOWN`; one whose effect a rollback discarded is `CALL_ROLLED_BACK` until an undo brings it back; a call
 * that was refused before it began leaves no trace. Results are kept within bounds: one that was dropped answers without
 * its content, and is never run again.
 */
export interface Ledger {
  once(session: Session, call: LedgerCall, run: () => Promise<LedgerEntry>): Promise<LedgerAnswer>;
  /** The answer to a call that was made before, in flight or ended; `TOOL_CALL_NOT_FOUND` where there was none. */
  recall(session: Session, callId: string): Promise<LedgerAnswer>;
  /** Throws `TOOL_CALL_NOT_FOUND` where no call of this id was ever begun, or it is no longer kept. */
  assertKnown(session: Session, callId: string): Promise<void>;
}

interface CallKey {
  readonly token: string;
  readonly callId: string;
}

/** Refusals that come before any effect, so that the same id may be sent again. */
export class NotStarted extends Error {
  override readonly name = "NotStarted";
}

export function createLedger(deps: {
  readonly records: Records;
  readonly results: StoredResults;
  readonly clock: Clock;
}): Ledger {
  const { records, results, clock } = deps;
  const inFlight = new Map<string, { readonly payloadHash: string; readonly result: Promise<ToolResult> }>();

  const load = (known: KnownCall): Promise<ToolResult | null> => results.load(known);
  const perform = async (key: CallKey, run: () => Promise<LedgerEntry>): Promise<ToolResult> => {
    try {
      const entry = await run();
      await results.finish(key, entry);
      return entry.result;
    } catch (thrown) {
      if (!(thrown instanceof NotStarted)) throw thrown;
      await records.call("forgetCall", key);
      throw thrown.cause;
    }
  };

  return {
    once: async (session, { callId, payload }, run) => {
      const { token, generation, headGeneration } = session.row;
      const payloadHash = createHash("sha256").update(payload).digest("hex");
      const place = `${token}/${callId}`;
      const running = inFlight.get(place);
      if (running !== undefined) {
        assertSame(running.payloadHash, payloadHash, callId);
        return { result: await running.result, from: "store" };
      }
      // The place is taken before anything is awaited, so that a second call of this id joins instead of racing.
      const answer = Promise.withResolvers<ToolResult>();
      answer.promise.catch(() => undefined);
      inFlight.set(place, { payloadHash, result: answer.promise });
      try {
        const start = { token, callId, payloadHash, generation, headGeneration, atMs: clock.nowMs() };
        const known = await records.call("beginCall", start);
        if (known !== null) {
          assertSame(known.payloadHash, payloadHash, callId);
          const result = await answerOf(known, load);
          answer.resolve(result);
          return { result, from: "store" };
        }
        const result = await perform({ token, callId }, run);
        answer.resolve(result);
        return { result, from: "run" };
      } catch (thrown) {
        answer.reject(thrown);
        throw thrown;
      } finally {
        inFlight.delete(place);
      }
    },

    recall: async (session, callId) => {
      const { token } = session.row;
      const running = inFlight.get(`${token}/${callId}`);
      if (running !== undefined) return { result: await running.result, from: "store" };
      const known = await records.call("findCall", { token, callId });
      if (known === null) throw notFound(callId);
      return { result: await answerOf(known, load), from: "store" };
    },

    assertKnown: async ({ row: { token } }, callId) => {
      if (inFlight.has(`${token}/${callId}`)) return;
      if ((await records.call("findCall", { token, callId })) === null) throw notFound(callId);
    },
  };
}

function notFound(callId: string): SandboxError {
  return new SandboxError("TOOL_CALL_NOT_FOUND", `there is no tool call ${JSON.stringify(callId)}`, {
    metadata: { toolCallId: callId },
  });
}

function assertSame(first: string, second: string, callId: string): void {
  if (first === second) return;
  throw new SandboxError("IDEMPOTENCY_CONFLICT", `tool call ${JSON.stringify(callId)} was made with other arguments`, {
    metadata: { toolCallId: callId },
  });
}
