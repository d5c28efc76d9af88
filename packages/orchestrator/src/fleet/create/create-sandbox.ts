import { type Clock, createDeadline, hasReason, type Reason, SandboxError } from "@turnbox/core";
import type { Log } from "@turnbox/core";
import type { SandboxRow, Store } from "../../store/store.ts";
import type { ControlCall, CreatedSandbox, CreateSandboxRequest } from "../../control/sandbox-control.ts";
import type { AwaitHosts } from "../registry/await-hosts.ts";
import { type CreateAttempt, isUnknown, type Own, takenOver } from "./create-attempt.ts";
import { formatFleetId } from "../fleet-id.ts";
import { idempotencyConflict } from "./idempotency-conflict.ts";
import { createSharedCall, type SharedCall } from "./shared-call.ts";
import { hashPayload } from "./payload-hash.ts";
import type { WakeHost } from "../registry/wake-host.ts";
import { createSettleCreate } from "./settle-create.ts";
import type { SlotClaim } from "../placement/slots.ts";
import { createTakeSlot, demandOf, type TakenSlot, type TakeSlotOptions } from "./take-slot.ts";

export interface CreateSandboxOptions extends TakeSlotOptions {
  readonly store: Store;
  readonly wakeHost: WakeHost;
  readonly awaitHosts: AwaitHosts;
  readonly clock: Clock;
  readonly logger: Log;
  /** Ids that nobody guesses. */
  readonly newSessionId: () => string;
  /** How long the whole create may take; it goes on when its caller leaves. */
  readonly createTimeoutMs: number;
  /** Ends the creates in flight; their outcome is settled by whoever repeats them. */
  readonly shutdown: AbortSignal;
}

export type CreateSandbox = (request: CreateSandboxRequest, call: ControlCall) => Promise<CreatedSandbox>;

interface InFlight {
  readonly payloadHash: string;
  readonly interest: SharedCall;
  readonly result: Promise<CreatedSandbox>;
}

const METHOD = "CreateSandbox";
const CLEANUP_TIMEOUT_MS = 10_000;
/** What a caller gets before its time is over: the answer that there was no room. */
const MARGIN_MS = 500;
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
 * Makes sandboxes on the fleet.
 *
 * A key makes one sandbox, however often and from wherever it comes: calls at the same time join, later ones get the
 * first answer, and a create that was cut off is taken up where it was. Failures are not kept. A host that refuses, or
 * could not be sent anything, is passed over for the next candidate. Once a host may have begun, only that host is asked,
 * with the same session id and the same key, until it says what became of it; where it does not, the outcome is unknown
 * and is said to be.
 */
export function createCreateSandbox(options: CreateSandboxOptions): CreateSandbox {
  const { registry, store, slots, queue, clock, newSessionId, createTimeoutMs, shutdown } = options;
  const takeSlot = createTakeSlot(options);
  const { settleOn, giveBack } = createSettleCreate(options);
  const inFlight = new Map<string, InFlight>();

  /** Detached from the caller: what was begun is brought to its end. */
  const detached = async <T>(tenant: string, work: (call: ControlCall) => Promise<T>): Promise<T> => {
    using deadline = createDeadline({ clock, ms: createTimeoutMs, signal: shutdown });
    return await work({ tenant, signal: deadline.signal });
  };
  /** Cleanup has its own time: the caller's may be over. */
  const cleanup = async (work: (call: Own) => Promise<unknown>): Promise<void> => {
    using deadline = createDeadline({ clock, ms: CLEANUP_TIMEOUT_MS });
    await work({ signal: deadline.signal });
  };

  /** The sandbox is there: where that cannot be put on record, nothing may be taken back, and only the key finds it again. */
  const putOnRecord: typeof cleanup = async (work) => {
    try {
      await cleanup(work);
    } catch (error) {
      const { reason, message } = SandboxError.from(error);
      throw new SandboxError(reason, message, { admitted: "unknown", cause: error });
    }
  };

  /** A failure of the store says nothing about a create that was begun before. */
  const stillUnknown = async <T>({ begun }: CreateAttempt, work: () => Promise<T>): Promise<T> => {
    try {
      return await work();
    } catch (error) {
      const { reason, message } = SandboxError.from(error);
      if (begun === "now" || reason === "SANDBOX_EXISTS") throw error;
      throw new SandboxError(reason, message, { admitted: "unknown", cause: error });
    }
  };

  const reserve = async ({ request, sessionId, call }: CreateAttempt): Promise<void> => {
    const row: SandboxRow = {
      sessionId,
      tenant: call.tenant,
      name: request.name,
      labels: request.labels,
      instanceId: undefined,
      phase: "creating",
      createdAtMs: clock.nowMs(),
    };
    const reservation = await store.reserveSandbox(row, call);
    if (reservation.kind === "reserved") return;
    const { by } = reservation;
    if (await isGone(by, call)) {
      await store.deleteSandbox(by.sessionId, call);
      if ((await store.reserveSandbox(row, call)).kind === "reserved") return;
    }
    throw new SandboxError("SANDBOX_EXISTS", `name: a sandbox named ${JSON.stringify(request.name)} exists`, {
      metadata: {
        name: request.name ?? "",
        ...(by.instanceId === undefined
          ? {}
          : { sandboxId: formatFleetId({ instanceId: by.instanceId, sessionId: by.sessionId }) }),
      },
    });
  };

  /** Whether the host says that the sandbox of a name is not there any more (expired, or removed behind our back). */
  const isGone = async (row: SandboxRow, call: ControlCall): Promise<boolean> => {
    if (row.instanceId === undefined || row.phase === "creating") return false;
    try {
      const { session } = await registry.connection(row.instanceId).getSandbox({ sandboxId: row.sessionId }, call);
      return session.state === "destroying";
    } catch (error) {
      return hasReason(error, "SANDBOX_NOT_FOUND", "INSTANCE_NOT_FOUND");
    }
  };

  /** Nothing came of it: the row and the key are free again, unless another replica has gone on. */
  const withdraw = async ({ sessionId, track, key }: CreateAttempt): Promise<void> => {
    await cleanup(async (own) => {
      const withdrawal = { sessionId, from: track.at, ...(key === undefined ? {} : { key }) };
      if ((await store.withdrawSandbox(withdrawal, own)) === "changed") throw takenOver();
    });
  };

  const tryOn = async (place: SlotClaim, attempt: CreateAttempt, first: "fresh" | "begun"): Promise<CreatedSandbox> => {
    const { request, sessionId, call, track } = attempt;
    using claim = place;
    const { instanceId } = claim;
    const placing = { sessionId, instanceId, phase: "creating", from: track.at } as const;
    if ((await stillUnknown(attempt, () => store.placeSandbox(placing, call))) === "changed") throw takenOver();
    const left = track.at;
    track.at = instanceId;
    // Whoever began it there may have had it made since that host refused it here.
    if (attempt.begun === "before" && left !== undefined && left !== instanceId) await giveBack(left, attempt, call);
    const made = await settleOn(instanceId, attempt, first).catch((error: unknown) => {
      // The sandbox may be there: its place is taken until the host says otherwise.
      if (isUnknown(error)) claim.keep();
      throw error;
    });
    claim.keep();
    await putOnRecord(async (own) => {
      const there = await store.placeSandbox({ ...placing, phase: "created", from: instanceId }, own);
      if (there === "placed") return;
      await giveBack(instanceId, attempt, own);
      throw takenOver();
    });
    const named = request.name === undefined ? {} : { name: request.name };
    const sandboxId = formatFleetId({ instanceId, sessionId });
    const reached = made.connection === undefined ? {} : { connection: { ...made.connection, sandboxId } };
    return { ...made, ...named, ...reached, sandboxId };
  };

  /** Answers with why the last of the candidates refused where all did. */
  const tryCandidates = async (
    { claim, candidates }: TakenSlot,
    attempt: CreateAttempt,
  ): Promise<CreatedSandbox | { readonly refusal: SandboxError }> => {
    let refusal = new SandboxError("INTERNAL", "there was no candidate");
    for (const [index, instanceId] of candidates.entries()) {
      const place = index === 0 ? claim : slots.claim(instanceId, demandOf(attempt.request));
      const made = await tryOn(place, attempt, "fresh").catch((error: unknown) => {
        refusal = passOverError(error);
        return undefined;
      });
      if (made !== undefined) return made;
      queue.pump();
    }
    return { refusal };
  };
  /** Whether a host that got nothing of this is on its way again: then the create waits for it as for any room. */
  const isBackSoon = async ({ reason }: SandboxError, { candidates }: TakenSlot, { call }: CreateAttempt) => {
    if (reason !== "HOST_UNREACHABLE") return false;
    await registry.sync(call).catch(() => undefined);
    return candidates.some((instanceId) => registry.isComing(instanceId));
  };
  const runFresh = async (attempt: CreateAttempt): Promise<CreatedSandbox> => {
    const signal = AbortSignal.any([attempt.wanted, attempt.call.signal]);
    for (let round = 1; ; round += 1) {
      const taken = await takeSlot(attempt, { signal });
      const outcome = await tryCandidates(taken, attempt);
      if (!("refusal" in outcome)) return outcome;
      if (!FULL.includes(outcome.refusal.reason) && !(await isBackSoon(outcome.refusal, taken, attempt)))
        throw outcome.refusal;
      if (round === ROUNDS) throw queue.exhausted("every candidate is full", outcome.refusal);
      // What the hosts said before is old: they are asked before the next try.
      await Promise.allSettled(taken.candidates.map((instanceId) => registry.ask(instanceId, attempt.call)));
    }
  };

  const run = async (attempt: CreateAttempt): Promise<CreatedSandbox> => {
    const { request, sessionId, call, track } = attempt;
    try {
      const begunOn = await stillUnknown(attempt, async () => {
        const row = await store.getSandbox(sessionId, call);
        await reserve(attempt);
        await attempt.confirm();
        return row?.instanceId;
      });
      track.at = begunOn;
      if (begunOn !== undefined) {
        const resumed = await tryOn(slots.claim(begunOn, demandOf(request)), attempt, "begun").catch(passOver);
        if (resumed !== undefined) return resumed;
      }
      return await runFresh(attempt);
    } catch (error) {
      if (!isUnknown(error)) await withdraw(attempt);
      throw error;
    }
  };

  const runKeyed = async (attempt: Omit<CreateAttempt, "sessionId">, payloadHash: string): Promise<CreatedSandbox> => {
    const { request, call } = attempt;
    const ref = { tenant: call.tenant, method: METHOD, key: request.idempotencyKey };
    const fresh = newSessionId();
    const begin = (plan: string) => store.beginIdempotent({ ...ref, payloadHash, plan, nowMs: clock.nowMs() }, call);
    const state = await begin(fresh);
    if (state.kind === "conflict") throw idempotencyConflict(request.idempotencyKey);
    if (state.kind === "done") return JSON.parse(state.result) as CreatedSandbox;
    const confirm = async (plan: string): Promise<void> => {
      const now = await begin(plan);
      if (now.kind !== "begun" && !(now.kind === "pending" && now.plan === plan)) throw takenOver();
    };
    const planned = { ...attempt, key: ref };
    const whole: CreateAttempt =
      state.kind === "pending"
        ? { ...planned, sessionId: state.plan, begun: "before", confirm: () => confirm(state.plan) }
        : { ...planned, sessionId: fresh };
    const made = await run(whole);
    await putOnRecord(async (own) => {
      const finish = { ...ref, plan: whole.sessionId };
      // Whoever repeats the key comes later, when the way may be another one.
      const result = JSON.stringify({ ...made, connection: undefined });
      if ((await store.finishIdempotent(finish, result, own)) === "finished") return;
      if (whole.track.at !== undefined) await giveBack(whole.track.at, whole, own);
      await withdraw(whole);
      throw takenOver();
    });
    return made;
  };

  return async (request, call) => {
    call.signal.throwIfAborted();
    const interest = createSharedCall();
    const patienceMs = Math.max(0, Math.min(createTimeoutMs, call.timeoutMs ?? createTimeoutMs) - MARGIN_MS);
    const begin = (own: ControlCall) => ({
      request,
      call: own,
      wanted: interest.signal,
      patienceMs,
      begun: "now" as const,
      key: undefined,
      confirm: () => Promise.resolve(),
      track: { at: undefined },
    });
    if (request.idempotencyKey === "") {
      const made = detached(call.tenant, (own) => run({ ...begin(own), sessionId: newSessionId() }));
      return await interest.follow(made, call.signal);
    }
    const { idempotencyKey: _key, ...payload } = request;
    const payloadHash = hashPayload(payload);
    const place = JSON.stringify([call.tenant, request.idempotencyKey]);
    const joined = inFlight.get(place);
    if (joined !== undefined) {
      if (joined.payloadHash !== payloadHash) throw idempotencyConflict(request.idempotencyKey);
      return await joined.interest.follow(joined.result, call.signal);
    }
    const result = detached(call.tenant, (own) => runKeyed(begin(own), payloadHash)).finally(() =>
      inFlight.delete(place),
    );
    inFlight.set(place, { payloadHash, interest, result });
    return await interest.follow(result, call.signal);
  };
}

/** Whether another host may do what this one refused; anything else is the caller's to know. */
function passOverError(error: unknown): SandboxError {
  const refusal = SandboxError.from(error);
  const elsewhere = refusal.row.retry === "after_delay" || ELSEWHERE.includes(refusal.reason);
  if (isUnknown(refusal) || !elsewhere) throw refusal;
  return refusal;
}

function passOver(error: unknown): undefined {
  passOverError(error);
  return undefined;
}
