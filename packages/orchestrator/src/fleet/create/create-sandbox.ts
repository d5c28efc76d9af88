import { createDeadline, type Log } from "@turnbox/core";
import type { ControlCall, CreatedSandbox, CreateSandboxRequest } from "../../control/sandbox-control.ts";
import { hashPayload, idempotencyConflict } from "../idempotency.ts";
import type { AwaitHosts } from "../registry/await-hosts.ts";
import { beginCreate } from "./begin-create.ts";
import type { CreateAttempt, CreateWish } from "./create-attempt.ts";
import { CreateOperation, type CreateOperationOptions, type CreateStart } from "./create-operation.ts";
import { HostAsker, type HostAskerOptions } from "./host-asker.ts";
import { SlotTaker, type TakenSlot, type TakeSlotOptions } from "./take-slot.ts";
import { SharedCall } from "./shared-call.ts";

export interface CreateSandboxOptions
  extends TakeSlotOptions,
    HostAskerOptions,
    Omit<CreateOperationOptions, "slotTaker" | "asker"> {
  readonly awaitHosts: AwaitHosts;
  readonly logger: Log;
  /** Ids that cannot be guessed. */
  readonly newSessionId: () => string;
  /** How long the whole create may take; it goes on when its caller leaves. */
  readonly createTimeoutMs: number;
  /** Ends the creates in flight; their outcome is settled by the next call under the same key. */
  readonly shutdown: AbortSignal;
}

interface InFlight {
  readonly payloadHash: string;
  readonly shared: SharedCall<CreatedSandbox>;
}

const METHOD = "CreateSandbox";
/** What a caller gets before its time is over: the answer that there was no room. */
const MARGIN_MS = 500;

/**
 * Makes sandboxes on the fleet.
 *
 * A key makes one sandbox, however often and from wherever it comes: calls at the same time join, later ones get the
 * first result, and a create that was cut off is taken up from where it was. Failures are not kept. If the outcome on a
 * host stays unknown, the error says so. What no caller waits for when it is made is destroyed if it could not be found again.
 */
export class SandboxCreator {
  readonly #options: CreateSandboxOptions;
  readonly #operation: CreateOperationOptions;
  /** By tenant and key. */
  readonly #inFlight = new Map<string, InFlight>();

  constructor(options: CreateSandboxOptions) {
    this.#options = options;
    this.#operation = { ...options, slotTaker: new SlotTaker(options), asker: new HostAsker(options) };
  }

  async create(request: CreateSandboxRequest, call: ControlCall): Promise<CreatedSandbox> {
    call.signal.throwIfAborted();
    const { idempotencyKey, ...payload } = request;
    const shared =
      idempotencyKey === "" ? this.#start(request, call, undefined) : this.#join(request, call, hashPayload(payload));
    return await shared.follow(call.signal);
  }

  #join(request: CreateSandboxRequest, call: ControlCall, payloadHash: string): SharedCall<CreatedSandbox> {
    const id = JSON.stringify([call.tenant, request.idempotencyKey]);
    const joined = this.#inFlight.get(id);
    if (joined !== undefined && joined.payloadHash !== payloadHash) throw idempotencyConflict(request.idempotencyKey);
    if (joined?.shared.isGivenUp === false) return joined.shared;
    const shared = this.#start(request, call, payloadHash, joined?.shared);
    this.#inFlight.set(id, { payloadHash, shared });
    const forget = (): void => {
      if (this.#inFlight.get(id)?.shared === shared) this.#inFlight.delete(id);
    };
    shared.result.then(forget, forget);
    return shared;
  }

  #start(
    request: CreateSandboxRequest,
    { tenant, timeoutMs }: ControlCall,
    payloadHash: string | undefined,
    before?: SharedCall<CreatedSandbox>,
  ): SharedCall<CreatedSandbox> {
    const { clock, createTimeoutMs, shutdown } = this.#options;
    const patienceMs = Math.max(0, Math.min(createTimeoutMs, timeoutMs ?? createTimeoutMs) - MARGIN_MS);
    return new SharedCall(async (followers) => {
      // One that was given up has its key and its name until it is taken back.
      await before?.result.catch(() => undefined);
      using deadline = createDeadline({ clock, ms: createTimeoutMs, signal: shutdown });
      const call = { tenant, signal: deadline.signal };
      return await this.#make({ request, call, ...followers, patienceMs }, payloadHash);
    });
  }

  async #make(wish: CreateWish, payloadHash: string | undefined): Promise<CreatedSandbox> {
    const { clock, newSessionId } = this.#options;
    const { tenant } = wish.call;
    const sessionId = newSessionId();
    const ref = { tenant, method: METHOD, key: wish.request.idempotencyKey };
    const key = payloadHash === undefined ? {} : { key: { ...ref, payloadHash, nowMs: clock.nowMs() } };
    // A slot that is free names the first host in the same transaction that puts the create on record.
    const slot = await this.#operation.slotTaker.takeNow(wish.request);
    using claim = slot?.claim;
    const first = claim === undefined ? {} : { instanceId: claim.instanceId };
    const begun = await beginCreate(this.#options, { wish, sessionId, ...key, ...first });
    if (begun.kind !== "reserved") claim?.[Symbol.dispose]();
    const attempt = { ...wish, ...(payloadHash === undefined ? {} : { key: ref }) };
    switch (begun.kind) {
      case "conflict":
        throw idempotencyConflict(ref.key);
      case "done":
        return JSON.parse(begun.result) as CreatedSandbox;
      case "reserved":
        return await this.#carryOut({ ...attempt, sessionId, begun: "now" }, startOn(slot));
      case "resumed": {
        const { sessionId: begunId, instanceId: on } = begun.row;
        const start: CreateStart = on === undefined ? { kind: "unplaced" } : { kind: "resumed", on };
        return await this.#carryOut({ ...attempt, sessionId: begunId, begun: "before" }, start);
      }
    }
  }

  async #carryOut(attempt: CreateAttempt, start: CreateStart): Promise<CreatedSandbox> {
    return await new CreateOperation(this.#operation, attempt, start).run();
  }
}

const startOn = (slot: TakenSlot | undefined): CreateStart =>
  slot === undefined ? { kind: "unplaced" } : { kind: "placed", slot };
