import { type Clock, createDeadline, type Reason, SandboxError } from "@turnbox/core";
import type { CreatedSandbox } from "../../control/sandbox-control.ts";
import type { Store } from "../../store/store.ts";
import { formatFleetId } from "../fleet-id.ts";
import type { SlotClaim, Slots } from "../placement/slots.ts";
import type { InstanceRegistry } from "../registry/instance-registry.ts";
import { type CreateAttempt, isUnknown, outcomeUnknown, type Own, takenOver } from "./create-attempt.ts";
import type { CreateQueue } from "./create-queue.ts";
import type { HostAnswer, HostAsker } from "./host-asker.ts";
import { demandOf, type SlotTaker, type TakenSlot } from "./take-slot.ts";

export interface CreateOperationOptions {
  readonly registry: InstanceRegistry;
  readonly store: Store;
  readonly slots: Slots;
  readonly queue: CreateQueue;
  readonly slotTaker: SlotTaker;
  readonly asker: HostAsker;
  readonly clock: Clock;
}

/**
 * Where a create goes on from: its row names no instance, the instance of a slot that was taken for it, or the instance
 * that an earlier call may have asked.
 */
export type CreateStart =
  | { readonly kind: "unplaced" }
  | { readonly kind: "placed"; readonly slot: TakenSlot }
  | { readonly kind: "resumed"; readonly on: string };

/** How far a create is. In every state but `reserved` its row names the instance `on`. */
type State =
  /** Its row names no instance: no host has been asked. */
  | { readonly kind: "reserved" }
  /** The host is asked next. `begun`: an earlier call may have asked it already. */
  | { readonly kind: "placed"; readonly on: string; readonly first: "fresh" | "begun" }
  /** The host was asked and has not answered. */
  | { readonly kind: "asked"; readonly on: string; readonly answer: Promise<HostAnswer> }
  /** The host does not have it and will not make it. */
  | { readonly kind: "refused"; readonly on: string; readonly refusal: SandboxError }
  /** The host has it. */
  | { readonly kind: "made"; readonly on: string; readonly sandbox: CreatedSandbox }
  /** The host may have it, and only a call under the same key finds out. */
  | { readonly kind: "unknown"; readonly on: string; readonly error: SandboxError };

type StateOf<Kind extends State["kind"]> = State & { readonly kind: Kind };

const CLEANUP_TIMEOUT_MS = 10_000;
/** How often a create goes back to waiting when every candidate turned out to be full. */
const ROUNDS = 5;

/** Refusals that are about this host alone. */
const ELSEWHERE: readonly Reason[] = [
  "HOST_UNREACHABLE",
  "INSTANCE_NOT_FOUND",
  "TEMPLATE_NOT_FOUND",
  "COMMAND_MISSING",
];
const FULL: readonly Reason[] = ["MAX_SESSIONS_REACHED", "SESSION_LIMIT_REACHED", "POOL_FULL", "DATA_DISK_FULL"];

/**
 * One create whose key and row are on record, from there to its end.
 *
 *     reserved -> placed -> asked -> made -> (finished)
 *                   ^         |----> unknown
 *                   |         v
 *                   +----- refused
 *
 * A host that refuses, or could not be sent anything, is passed over for the next candidate. Once a host may have begun,
 * only that host is asked until it says what became of it. A failure takes the row and the key back, unless the outcome
 * is unknown: then both stay, and the next call under the key goes on from the instance that the row names.
 */
export class CreateOperation {
  readonly #options: CreateOperationOptions;
  readonly #attempt: CreateAttempt;
  #state: State;
  /** Taken from before the host is asked until it has refused; kept for good if it may have the sandbox. */
  #slot: SlotClaim | undefined;
  #round = 0;
  /** The candidates of this round, and those of them that were not tried yet. */
  #candidates: readonly string[] = [];
  #untried: string[] = [];

  constructor(options: CreateOperationOptions, attempt: CreateAttempt, start: CreateStart) {
    this.#options = options;
    this.#attempt = attempt;
    switch (start.kind) {
      case "unplaced":
        this.#state = { kind: "reserved" };
        break;
      case "placed":
        this.#slot = this.#beginRound(start.slot);
        this.#state = { kind: "placed", on: this.#slot.instanceId, first: "fresh" };
        break;
      case "resumed":
        this.#slot = options.slots.claim(start.on, demandOf(attempt.request));
        this.#state = { kind: "placed", on: start.on, first: "begun" };
        break;
    }
  }

  async run(): Promise<CreatedSandbox> {
    try {
      for (;;) {
        const state = this.#state;
        if (state.kind === "made") return await this.#finish(state);
        if (state.kind === "unknown") throw state.error;
        this.#state = await this.#next(state);
      }
    } catch (error) {
      if (!isUnknown(error)) await this.#withdraw();
      throw error;
    } finally {
      this.#slot?.[Symbol.dispose]();
    }
  }

  async #next(state: Exclude<State, StateOf<"made" | "unknown">>): Promise<State> {
    switch (state.kind) {
      case "reserved":
        return await this.#assign(await this.#takeSlot());
      case "placed":
        return this.#ask(state);
      case "asked":
        return this.#judge(state.on, await state.answer);
      case "refused":
        return await this.#goElsewhere(state);
    }
  }

  /** Takes a slot, or waits for one while a caller wants the sandbox. */
  async #takeSlot(): Promise<SlotClaim> {
    const { wanted, call } = this.#attempt;
    const signal = AbortSignal.any([wanted, call.signal]);
    return this.#beginRound(await this.#options.slotTaker.take(this.#attempt, { signal }));
  }

  #beginRound({ claim, candidates }: TakenSlot): SlotClaim {
    this.#round += 1;
    this.#candidates = candidates;
    this.#untried = candidates.slice(1);
    return claim;
  }

  /** reserved, refused -> placed: it is on record which host is asked before it is. */
  async #assign(slot: SlotClaim): Promise<State> {
    const { store, asker } = this.#options;
    const { sessionId, begun, call } = this.#attempt;
    const { instanceId } = slot;
    this.#slot = slot;
    const from = this.#recordedOn();
    const placed = await store.placeSandbox({ sessionId, instanceId, from }, call).catch((error: unknown) => {
      if (begun === "now") throw error;
      // A failure of the store says nothing about what an earlier call may have had made.
      throw outcomeUnknown(error);
    });
    if (placed === "changed") throw takenOver();
    // Another replica may have had it made there since that host refused it here.
    if (begun === "before" && from !== undefined && from !== instanceId) {
      await asker.giveBack(from, this.#attempt, call);
    }
    return { kind: "placed", on: instanceId, first: "fresh" };
  }

  /** placed -> asked */
  #ask({ on, first }: StateOf<"placed">): State {
    return { kind: "asked", on, answer: this.#options.asker.ask(on, this.#attempt, first) };
  }

  /** asked -> made, refused, unknown */
  #judge(on: string, answer: HostAnswer): State {
    if (answer.kind === "refused") this.#slot?.[Symbol.dispose]();
    else this.#slot?.keep();
    return { ...answer, on };
  }

  /** refused -> placed on the next candidate, or on one that room was waited for. */
  async #goElsewhere({ refusal }: StateOf<"refused">): Promise<State> {
    const { slots, queue } = this.#options;
    if (refusal.row.retry !== "after_delay" && !ELSEWHERE.includes(refusal.reason)) throw refusal;
    queue.pump();
    const next = this.#untried.shift();
    if (next !== undefined) return await this.#assign(slots.claim(next, demandOf(this.#attempt.request)));
    if (this.#round > 0) await this.#beforeNextRound(refusal);
    return await this.#assign(await this.#takeSlot());
  }

  /** All candidates refused. Throws unless their room was taken meanwhile, or one of them is on its way back. */
  async #beforeNextRound(refusal: SandboxError): Promise<void> {
    const { queue, registry } = this.#options;
    if (!FULL.includes(refusal.reason) && !(await this.#isBackSoon(refusal))) throw refusal;
    if (this.#round === ROUNDS) throw queue.exhausted("every candidate is full", refusal);
    // What the hosts said before is old: they are asked before the next try.
    await Promise.allSettled(this.#candidates.map((instanceId) => registry.ask(instanceId, this.#attempt.call)));
  }

  /** Whether a host that got nothing of this starts again: then the create waits for it as for any room. */
  async #isBackSoon({ reason }: SandboxError): Promise<boolean> {
    if (reason !== "HOST_UNREACHABLE") return false;
    const { registry } = this.#options;
    await registry.sync(this.#attempt.call).catch(() => undefined);
    return this.#candidates.some((instanceId) => registry.isComing(instanceId));
  }

  /** made -> finished. What is there cannot be taken back: if it cannot be put on record, only the key finds it again. */
  async #finish({ on, sandbox }: StateOf<"made">): Promise<CreatedSandbox> {
    const { sessionId, key, request, giveUpIfAbandoned } = this.#attempt;
    const { ifAbandoned = key === undefined ? "discard" : "keep" } = request;
    if (ifAbandoned === "discard" && giveUpIfAbandoned()) {
      await this.#cleanUp((own) => this.#options.asker.giveBack(on, this.#attempt, own));
      throw new SandboxError("CANCELLED", "no caller waits for the sandbox; it is destroyed", { admitted: "no" });
    }
    const made = inFleet(sandbox, { instanceId: on, attempt: this.#attempt });
    // A call that repeats the key comes later, when the sandbox may be reached in another way.
    const result = JSON.stringify({ ...made, connection: undefined });
    const finish = { sessionId, instanceId: on, result, ...(key === undefined ? {} : { key }) };
    const finished = await this.#cleanUp((own) => this.#options.store.finishCreate(finish, own)).catch(
      (error: unknown) => {
        throw outcomeUnknown(error);
      },
    );
    if (finished === "finished") return made;
    await this.#cleanUp((own) => this.#options.asker.giveBack(on, this.#attempt, own));
    await this.#withdraw().catch(() => undefined);
    throw takenOver();
  }

  /** Nothing came of it: the row and the key are free again, unless another replica has gone on. */
  async #withdraw(): Promise<void> {
    const { sessionId, key } = this.#attempt;
    const withdrawal = { sessionId, from: this.#recordedOn(), ...(key === undefined ? {} : { key }) };
    const withdrawn = await this.#cleanUp((own) => this.#options.store.withdrawSandbox(withdrawal, own));
    if (withdrawn === "changed") throw takenOver();
  }

  /** The instance that the row names, as far as this replica knows; another one may go on with the same sandbox. */
  #recordedOn(): string | undefined {
    return this.#state.kind === "reserved" ? undefined : this.#state.on;
  }

  /** Cleanup has its own time: the caller's may be over. */
  async #cleanUp<T>(work: (call: Own) => Promise<T>): Promise<T> {
    using deadline = createDeadline({ clock: this.#options.clock, ms: CLEANUP_TIMEOUT_MS });
    return await work({ signal: deadline.signal });
  }
}

/** The host's sandbox under its name and its id in the fleet. */
function inFleet(
  sandbox: CreatedSandbox,
  { instanceId, attempt }: { readonly instanceId: string; readonly attempt: CreateAttempt },
): CreatedSandbox {
  const sandboxId = formatFleetId({ instanceId, sessionId: attempt.sessionId });
  const { name } = attempt.request;
  return {
    ...sandbox,
    ...(name === undefined ? {} : { name }),
    ...(sandbox.connection === undefined ? {} : { connection: { ...sandbox.connection, sandboxId } }),
    sandboxId,
  };
}
