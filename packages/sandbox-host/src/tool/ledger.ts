import { createHash } from "node:crypto";
import { type Clock, SandboxError } from "@turnbox/core";
import type { Records } from "../record/records.ts";
import type { KnownCall } from "../record/row.ts";
import type { Session } from "../session/session.ts";
import { resultOf } from "./recorded-call.ts";
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

interface CallKey {
  readonly token: string;
  readonly callId: string;
}

interface CallInFlight {
  readonly payloadHash: string;
  readonly result: Promise<ToolResult>;
}

/** Refusals that come before any effect, so that the same id may be sent again. */
export class NotStarted extends Error {
  override readonly name = "NotStarted";
}

/**
 * Runs effectful calls exactly once: `started` is durable before the effect, the result before the response. The same id
 * joins the call in flight or gets the stored result. A call whose end was not recorded, and one whose effect may be lost,
 * is `OUTCOME_UNKNOWN`; one whose effect a rollback discarded is `CALL_ROLLED_BACK` until an undo brings it back; a call
 * that was refused before it began leaves no trace. Results are kept within bounds: one that was dropped is returned without
 * its content, and is never run again.
 */
export class Ledger {
  readonly #records: Records;
  readonly #results: StoredResults;
  readonly #clock: Clock;
  readonly #inFlight = new Map<string, CallInFlight>();

  constructor(deps: { readonly records: Records; readonly results: StoredResults; readonly clock: Clock }) {
    this.#records = deps.records;
    this.#results = deps.results;
    this.#clock = deps.clock;
  }

  async once(session: Session, call: LedgerCall, run: () => Promise<LedgerEntry>): Promise<LedgerAnswer> {
    const { callId } = call;
    const payloadHash = createHash("sha256").update(call.payload).digest("hex");
    const key = keyOf(session, callId);
    const running = this.#inFlight.get(key);
    if (running !== undefined) {
      assertSame(running.payloadHash, payloadHash, callId);
      return { result: await running.result, from: "store" };
    }
    // The call is in flight before anything is awaited, so that a second call of this id joins instead of racing.
    const result = Promise.withResolvers<ToolResult>();
    result.promise.catch(() => undefined);
    this.#inFlight.set(key, { payloadHash, result: result.promise });
    try {
      const answer = await this.#begin(session, { callId, payloadHash }, run);
      result.resolve(answer.result);
      return answer;
    } catch (thrown) {
      result.reject(thrown);
      throw thrown;
    } finally {
      this.#inFlight.delete(key);
    }
  }

  /** The result of a call that was made before, in flight or ended; `TOOL_CALL_NOT_FOUND` if there was none. */
  async recall(session: Session, callId: string): Promise<LedgerAnswer> {
    const running = this.#inFlight.get(keyOf(session, callId));
    if (running !== undefined) return { result: await running.result, from: "store" };
    const known = await this.#records.call("findCall", { token: session.row.token, callId });
    if (known === null) throw notFound(callId);
    return { result: await this.#load(known), from: "store" };
  }

  /** Throws `TOOL_CALL_NOT_FOUND` if no call of this id was ever begun, or it is no longer kept. */
  async assertKnown(session: Session, callId: string): Promise<void> {
    if (this.#inFlight.has(keyOf(session, callId))) return;
    const known = await this.#records.call("findCall", { token: session.row.token, callId });
    if (known === null) throw notFound(callId);
  }

  async #begin(
    { row: { token, generation, headGeneration } }: Session,
    { callId, payloadHash }: { readonly callId: string; readonly payloadHash: string },
    run: () => Promise<LedgerEntry>,
  ): Promise<LedgerAnswer> {
    const start = { token, callId, payloadHash, generation, headGeneration, atMs: this.#clock.nowMs() };
    const known = await this.#records.call("beginCall", start);
    if (known === null) return { result: await this.#perform({ token, callId }, run), from: "run" };
    assertSame(known.payloadHash, payloadHash, callId);
    return { result: await this.#load(known), from: "store" };
  }

  async #perform(key: CallKey, run: () => Promise<LedgerEntry>): Promise<ToolResult> {
    try {
      const entry = await run();
      await this.#results.finish(key, entry);
      return entry.result;
    } catch (thrown) {
      if (!(thrown instanceof NotStarted)) throw thrown;
      await this.#records.call("forgetCall", key);
      throw thrown.cause;
    }
  }

  async #load(known: KnownCall): Promise<ToolResult> {
    return await resultOf(known, (call) => this.#results.load(call));
  }
}

function keyOf({ row }: Session, callId: string): string {
  return `${row.token}/${callId}`;
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
