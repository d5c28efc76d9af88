import { createHash } from "node:crypto";
import { type Clock, SandboxError } from "@turnbox/core";
import type { Records } from "../record/records.ts";
import type { ReceiptRow } from "../record/row.ts";

/** A request that may come more than once. An empty key means that the caller gave none: then it is done each time. */
export interface KeyedRequest {
  /** Tenant and operation. */
  readonly scope: string;
  readonly key: string;
  /** The request's content in a canonical form. */
  readonly payload: string;
}

/**
 * Makes requests idempotent: the same key and payload answers with the first result or joins the call in flight, the
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
}

export function createReceipts(deps: { readonly records: Records; readonly clock: Clock }): Receipts {
  const inFlight = new Map<string, { readonly payloadHash: string; readonly result: Promise<unknown> }>();
  return {
    once: async <Result>(
      request: KeyedRequest,
      work: (receipt: (result: Result) => ReceiptRow | undefined) => Promise<Result>,
    ): Promise<Result> => {
      if (request.key === "") return await work(() => undefined);
      const { scope, key } = request;
      const payloadHash = createHash("sha256").update(request.payload).digest("hex");
      const place = JSON.stringify([scope, key]);
      const running = inFlight.get(place);
      if (running !== undefined) {
        assertSamePayload(running.payloadHash, payloadHash, key);
        return (await running.result) as Result;
      }
      const run = async (): Promise<Result> => {
        const known = await deps.records.call("findReceipt", { scope, key });
        if (known !== null) {
          assertSamePayload(known.payloadHash, payloadHash, key);
          return JSON.parse(known.result) as Result;
        }
        return await work((result) => ({
          scope,
          key,
          payloadHash,
          result: JSON.stringify(result),
          atMs: deps.clock.nowMs(),
        }));
      };
      const result = run();
      inFlight.set(place, { payloadHash, result });
      try {
        return await result;
      } finally {
        inFlight.delete(place);
      }
    },
  };
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
