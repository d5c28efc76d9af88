import type { Records } from "../record/records.ts";
import type { Receipts } from "../session/receipts.ts";
import type { BaseRef } from "../storage/storage.ts";
import type { Templates } from "../template/templates.ts";
import type { WarmPool } from "./pool.ts";

export interface RemoveTemplateRequest {
  readonly tenant: string;
  readonly idempotencyKey: string;
  /** The whole request in a canonical form, for the idempotency key. */
  readonly payload: string;
  readonly base: BaseRef;
}

/** Removes a version of a template once for the key of the request. Warm sessions that were made from it go first. */
export type RemoveTemplate = (request: RemoveTemplateRequest, call: { readonly signal: AbortSignal }) => Promise<void>;

export function createRemoveTemplate(deps: {
  readonly receipts: Pick<Receipts, "once">;
  readonly records: Pick<Records, "call">;
  readonly warm: Pick<WarmPool, "release">;
  readonly templates: Pick<Templates, "remove">;
}): RemoveTemplate {
  const { receipts, records, warm, templates } = deps;
  return async ({ tenant, idempotencyKey: key, payload, base }, call) => {
    await receipts.once<null>({ scope: `${tenant}/DeleteTemplate`, key, payload }, async (receiptOf) => {
      await warm.release(base);
      await templates.remove(base, call);
      const receipt = receiptOf(null);
      if (receipt !== undefined) await records.call("keepReceipt", receipt);
      return null;
    });
  };
}
