import { createHash } from "node:crypto";
import { type Clock, SandboxError } from "@turnbox/core";
import type { Records } from "../record/records.ts";
import type { Session } from "../session/session.ts";
import type { ToolResult } from "./result.ts";

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
 * joins the call in flight or gets the stored result. A call whose end was not recorded is `OUTCOME_UNKNOWN`, for ever; a
 * call that was refused before it began leaves no trace.
 */
export interface Ledger {
  once(session: Session, call: LedgerCall, run: () => Promise<ToolResult>): Promise<LedgerAnswer>;
}

/** Refusals that come before any effect, so that the same id may be sent again. */
export class NotStarted extends Error {
  override readonly name = "NotStarted";
}

export function createLedger(deps: { readonly records: Records; readonly clock: Clock }): Ledger {
  const { records, clock } = deps;
  const inFlight = new Map<string, { readonly payloadHash: string; readonly result: Promise<ToolResult> }>();

  const perform = async (
    session: Session,
    call: { readonly token: string; readonly callId: string; readonly payloadHash: string },
    run: () => Promise<ToolResult>,
  ): Promise<ToolResult> => {
    await records.call("startCall", {
      ...call,
      generation: session.row.generation,
      status: "started",
      result: null,
      atMs: clock.nowMs(),
    });
    try {
      const result = await run();
      await records.call("finishCall", { token: call.token, callId: call.callId, result: JSON.stringify(result) });
      return result;
    } catch (thrown) {
      if (!(thrown instanceof NotStarted)) throw thrown;
      await records.call("forgetCall", { token: call.token, callId: call.callId });
      throw thrown.cause;
    }
  };

  return {
    once: async (session, { callId, payload }, run) => {
      const { token } = session.row;
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
        const known = await records.call("findCall", { token, callId });
        if (known !== null) {
          assertSame(known.payloadHash, payloadHash, callId);
          const result = storedResult(known.result, callId);
          answer.resolve(result);
          return { result, from: "store" };
        }
        const result = await perform(session, { token, callId, payloadHash }, run);
        answer.resolve(result);
        return { result, from: "run" };
      } catch (thrown) {
        answer.reject(thrown);
        throw thrown;
      } finally {
        inFlight.delete(place);
      }
    },
  };
}

function assertSame(first: string, second: string, callId: string): void {
  if (first === second) return;
  throw new SandboxError("IDEMPOTENCY_CONFLICT", `tool call ${JSON.stringify(callId)} was made with other arguments`, {
    metadata: { toolCallId: callId },
  });
}

function storedResult(stored: string | null, callId: string): ToolResult {
  if (stored !== null) return JSON.parse(stored) as ToolResult;
  throw new SandboxError(
    "OUTCOME_UNKNOWN",
    `tool call ${JSON.stringify(callId)} was started and its end was not recorded`,
    {
      metadata: { toolCallId: callId },
    },
  );
}
