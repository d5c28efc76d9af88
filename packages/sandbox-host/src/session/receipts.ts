import { createHash } from "node:crypto";
import { type Clock, type Reason, SandboxError } from "@turnbox/core";
import type { Records } from "../record/records.ts";
import type { ReceiptRow } from "../record/row.ts";
import type { ReceiptBounds } from "./receipt-bounds.ts";

/** A request that may come more than once. An empty key means that the caller gave none: then it is done each time. */
export interface KeyedRequest {
  /** Tenant and operation. */
  readonly scope: string;
  readonly key: string;
  /** The request's content in a canonical form. */
  readonly payload: string;
}

/**
 * Makes requests idempotent: the same key and payload returns the first result or joins the call in flight, the
 * same key with another payload is `IDEMPOTENCY_CONFLICT`. Failures are not kept: a request that failed may come again.
 */
export interface Receipts {
  /**
   * Runs `work` unless its result is known. `work` gets a function that turns the result into the row to commit together
   * with its effect, so that effect and receipt are durable at once.
   */
  once<Result>(
    request: KeyedRequest,
    work: (receipt: (result: Result) => ReceiptRow | undefined) => Promise<Result>,
  ): Promise<Result>;
  /**
   * The same for an effect that is no record, and cannot be durable at once with its receipt: that it has begun is durable
   * before it begins. If its end was not recorded, the same key is `OUTCOME_UNKNOWN`, and nothing is done again.
   */
  onceApart<Result>(request: KeyedRequest, work: () => Promise<Result>): Promise<Result>;
}

/** In the place of a result, while there is none. */
const BEGUN = "";
/** Failures that do not say whether there was an effect. */
const UNSETTLED: readonly Reason[] = ["CANCELLED", "DEADLINE_EXCEEDED", "INTERNAL"];

export function createReceipts(deps: {
  readonly records: Records;
  readonly clock: Clock;
  /** Gets each receipt that is made; absent if they are not bounded. */
  readonly bounds?: Pick<ReceiptBounds, "note">;
}): Receipts {
  const inFlight = new Map<string, { readonly payloadHash: string; readonly result: Promise<unknown> }>();
  const rowOf = (request: KeyedRequest, result: string): ReceiptRow => {
    const { scope, key } = request;
    deps.bounds?.note(scope.length + key.length + result.length);
    return { scope, key, payloadHash: hashOf(request), result, atMs: deps.clock.nowMs() };
  };

  const once: Receipts["once"] = async <Result>(
    request: KeyedRequest,
    work: (receipt: (result: Result) => ReceiptRow | undefined) => Promise<Result>,
  ): Promise<Result> => {
    if (request.key === "") return await work(() => undefined);
    const { scope, key } = request;
    const payloadHash = hashOf(request);
    const inFlightKey = JSON.stringify([scope, key]);
    const running = inFlight.get(inFlightKey);
    if (running !== undefined) {
      assertSamePayload(running.payloadHash, payloadHash, key);
      return (await running.result) as Result;
    }
    const run = async (): Promise<Result> => {
      const known = await deps.records.call("findReceipt", { scope, key });
      if (known === null) return await work((result) => rowOf(request, JSON.stringify(result)));
      assertSamePayload(known.payloadHash, payloadHash, key);
      if (known.result === BEGUN) throw unknownOutcome(key);
      return JSON.parse(known.result) as Result;
    };
    const result = run();
    inFlight.set(inFlightKey, { payloadHash, result });
    try {
      return await result;
    } finally {
      inFlight.delete(inFlightKey);
    }
  };

  return {
    once,
    onceApart: (request, work) =>
      once(request, async () => {
        if (request.key === "") return await work();
        const begun = rowOf(request, BEGUN);
        await deps.records.call("keepReceipt", begun);
        const result = await work().catch(async (thrown: unknown) => {
          if (!UNSETTLED.includes(SandboxError.from(thrown).reason)) await deps.records.call("dropReceipt", begun);
          throw thrown;
        });
        await deps.records.call("finishReceipt", rowOf(request, JSON.stringify(result)));
        return result;
      }),
  };
}

function hashOf({ payload }: KeyedRequest): string {
  return createHash("sha256").update(payload).digest("hex");
}

function unknownOutcome(key: string): SandboxError {
  return new SandboxError(
    "OUTCOME_UNKNOWN",
    `the end of the request with idempotency key ${JSON.stringify(key)} is not recorded`,
    {
      metadata: { key },
    },
  );
}

function assertSamePayload(first: string, second: string, key: string): void {
  if (first === second) return;
  throw new SandboxError(
    "IDEMPOTENCY_CONFLICT",
    `idempotency key ${JSON.stringify(key)} was used with another request`,
    {
      metadata: { key },
    },
  );
}
