import { type Clock, hasReason, SandboxError } from "@turnbox/core";
import type { IdempotencyRef, Store } from "../store/store.ts";
import type { ControlCall, MutateSandboxRequest } from "../control/sandbox-control.ts";
import { hashPayload, idempotencyConflict } from "./idempotency.ts";

export type DestroySandbox = (request: MutateSandboxRequest, call: ControlCall) => Promise<void>;

const METHOD = "DestroySandbox";

/**
 * Makes a destroy repeatable: the same key again is answered from the store, and one whose answer was lost is a success
 * where the sandbox is not there any more. Without a key, a sandbox that is not there is not found.
 */
export function createDestroySandbox(options: {
  readonly store: Store;
  readonly clock: Clock;
  /** Ends the sandbox on its host. */
  readonly destroy: DestroySandbox;
}): DestroySandbox {
  const { store, clock, destroy } = options;

  const destroyKeyed = async (ref: IdempotencyRef, request: MutateSandboxRequest, call: ControlCall): Promise<void> => {
    const begin = { ...ref, payloadHash: hashPayload(request.sandboxId), plan: "", nowMs: clock.nowMs() };
    const state = await store.beginIdempotent(begin, call);
    if (state.kind === "conflict") throw idempotencyConflict(ref.key);
    if (state.kind === "done") return;
    try {
      await destroy(request, call).catch((error: unknown) => {
        if (state.kind === "begun" || !hasReason(error, "SANDBOX_NOT_FOUND")) throw error;
      });
    } catch (error) {
      if (SandboxError.from(error).admitted === "no") await store.abandonIdempotent(ref, call);
      throw error;
    }
    await store.finishIdempotent({ ...ref, plan: "" }, "", call);
  };

  return async (request, call) => {
    if (request.idempotencyKey === "") await destroy(request, call);
    else await destroyKeyed({ tenant: call.tenant, method: METHOD, key: request.idempotencyKey }, request, call);
  };
}
