import { type Clock, hasReason, newSessionId, type Reason, SandboxError } from "@turnbox/core";
import type { Log } from "@turnbox/core";
import { whileWanted } from "../../async/while-wanted.ts";
import type { SandboxRow, Store } from "../../store/store.ts";
import type { ControlCall, CreateSandboxRequest, Sandbox } from "../sandbox-control.ts";
import { formatFleetId } from "./fleet-id.ts";
import { idempotencyConflict } from "./idempotency-conflict.ts";
import type { InstanceRegistry } from "./instance-registry.ts";
import { hashPayload } from "./payload-hash.ts";
import { type PlacementRules, place } from "./placement.ts";
import type { Slots } from "./slots.ts";

export interface CreateSandboxOptions {
  readonly registry: InstanceRegistry;
  readonly store: Store;
  readonly slots: Slots;
  readonly rules: PlacementRules;
  readonly clock: Clock;
  readonly logger: Log;
  /** How long the whole create may take; it goes on when its caller leaves. */
  readonly createTimeoutMs: number;
  /** Ends the creates in flight; their outcome is settled by whoever repeats them. */
  readonly shutdown: AbortSignal;
}

export type CreateSandbox = (request: CreateSandboxRequest, call: ControlCall) => Promise<Sandbox>;

/** One create, from the first candidate to the end. The session's id is the same on every host that is asked. */
interface Attempt {
  readonly request: CreateSandboxRequest;
  readonly sessionId: string;
  readonly call: ControlCall;
}

interface InFlight {
  readonly payloadHash: string;
  readonly result: Promise<Sandbox>;
}

const METHOD = "CreateSandbox";
/** How often, and after what pauses, the same host is asked again when it is not known what became of a create. */
const RESOLVE_DELAYS_MS: readonly number[] = [200, 500, 1000, 2000, 4000];
const CLEANUP_TIMEOUT_MS = 10_000;
const RETRY_AFTER_MS = 2000;

/** Refusals before a host looked at the request: they say nothing about an earlier, unanswered one. */
const AT_THE_DOOR: readonly Reason[] = [
  "HOST_UNREACHABLE",
  "INSTANCE_NOT_FOUND",
  "OVERLOADED",
  "RATE_LIMITED",
  "SHUTTING_DOWN",
  "UNAUTHENTICATED",
];
/** Refusals that are about this host alone. */
const ELSEWHERE: readonly Reason[] = [
  "HOST_UNREACHABLE",
  "INSTANCE_NOT_FOUND",
  "TEMPLATE_NOT_FOUND",
  "COMMAND_MISSING",
];
const FULL: readonly Reason[] = ["MAX_SESSIONS_REACHED", "SESSION_LIMIT_REACHED", "POOL_FULL"];

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
  const { registry, store, slots, rules, clock, logger, createTimeoutMs, shutdown } = options;
  const inFlight = new Map<string, InFlight>();

  /** Detached from the caller: what was begun is brought to its end. */
  const lifecycle = (tenant: string): ControlCall => ({
    tenant,
    signal: AbortSignal.any([shutdown, AbortSignal.timeout(createTimeoutMs)]),
  });

  const reserve = async ({ request, sessionId, call }: Attempt): Promise<void> => {
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
      return hasReason(error, "SANDBOX_NOT_FOUND");
    }
  };

  const askHost = async (instanceId: string, { request, sessionId, call }: Attempt): Promise<Sandbox> => {
    const connection = registry.connection(instanceId);
    const { name: _name, ...rest } = request;
    try {
      return await connection.createSandbox({ ...rest, sessionId, idempotencyKey: `create-${sessionId}` }, call);
    } catch (error) {
      // The id is ours alone, so a session of this id is the one that an earlier try made.
      if (!hasReason(error, "SESSION_EXISTS")) throw error;
      const made = await connection.getSandbox({ sandboxId: sessionId }, call);
      if (made.session.state === "active") return made;
      throw new SandboxError("HOST_UNREACHABLE", `the session is ${made.session.state}`, { admitted: "unknown" });
    }
  };

  /** Asks one host until its answer is known: a sandbox, or an error that says `admitted: no`. */
  const settleOn = async (instanceId: string, attempt: Attempt, first: "fresh" | "begun"): Promise<Sandbox> => {
    let mayHaveBegun = first === "begun";
    for (const delayMs of [...RESOLVE_DELAYS_MS, undefined]) {
      let error: SandboxError;
      try {
        return await askHost(instanceId, attempt);
      } catch (thrown) {
        error = SandboxError.from(thrown);
      }
      const refused = error.admitted === "no" && !(mayHaveBegun && AT_THE_DOOR.includes(error.reason));
      if (refused) throw error;
      mayHaveBegun = true;
      if (delayMs === undefined || attempt.call.signal.aborted) throw unknownOutcome(instanceId, error);
      logger.warn({ instanceId, sessionId: attempt.sessionId, reason: error.reason }, "a create is asked for again");
      await clock.sleep(delayMs, attempt.call).catch(() => {
        throw unknownOutcome(instanceId, error);
      });
      await registry.sync(attempt.call).catch(() => undefined);
    }
    throw new SandboxError("INTERNAL", "the tries ended without an answer");
  };

  const tryOn = async (instanceId: string, attempt: Attempt, first: "fresh" | "begun"): Promise<Sandbox> => {
    const { request, sessionId, call } = attempt;
    using claim = slots.claim(instanceId, demandOf(request));
    await store.placeSandbox({ sessionId, instanceId, phase: "creating" }, call);
    const made = await settleOn(instanceId, attempt, first);
    claim.keep();
    await store.placeSandbox({ sessionId, instanceId, phase: "created" }, cleanupCall());
    const named = request.name === undefined ? {} : { name: request.name };
    return { ...made, ...named, sandboxId: formatFleetId({ instanceId, sessionId }) };
  };

  const run = async (attempt: Attempt): Promise<Sandbox> => {
    const { request, sessionId, call } = attempt;
    const begunOn = (await store.getSandbox(sessionId, call))?.instanceId;
    await reserve(attempt);
    try {
      if (begunOn !== undefined) {
        const resumed = await tryOn(begunOn, attempt, "begun").catch(passOver);
        if (resumed !== undefined) return resumed;
      }
      const placement = place(toPlacementRequest(request), registry.placementView(), rules);
      if (placement.kind === "refused") throw exhausted(placement.message);
      let refusal: SandboxError | undefined;
      for (const instanceId of placement.candidates) {
        const made = await tryOn(instanceId, attempt, "fresh").catch((error: unknown) => {
          refusal = passOverError(error);
          return undefined;
        });
        if (made !== undefined) return made;
      }
      throw refusal === undefined || FULL.includes(refusal.reason)
        ? exhausted("every candidate is full", refusal)
        : refusal;
    } catch (error) {
      if (!isUnknown(error)) await store.deleteSandbox(sessionId, cleanupCall());
      throw error;
    }
  };

  const runKeyed = async (request: CreateSandboxRequest, tenant: string, payloadHash: string): Promise<Sandbox> => {
    const call = lifecycle(tenant);
    const ref = { tenant, method: METHOD, key: request.idempotencyKey };
    const fresh = newSessionId();
    const state = await store.beginIdempotent({ ...ref, payloadHash, plan: fresh, nowMs: clock.nowMs() }, call);
    if (state.kind === "conflict") throw idempotencyConflict(request.idempotencyKey);
    if (state.kind === "done") return JSON.parse(state.result) as Sandbox;
    try {
      const made = await run({ request, sessionId: state.kind === "pending" ? state.plan : fresh, call });
      await store.finishIdempotent(ref, JSON.stringify(made), cleanupCall());
      return made;
    } catch (error) {
      if (!isUnknown(error)) await store.abandonIdempotent(ref, cleanupCall());
      throw error;
    }
  };

  return async (request, call) => {
    call.signal.throwIfAborted();
    if (request.idempotencyKey === "") {
      return await whileWanted(run({ request, sessionId: newSessionId(), call: lifecycle(call.tenant) }), call.signal);
    }
    const { idempotencyKey: _key, ...payload } = request;
    const payloadHash = hashPayload(payload);
    const place = JSON.stringify([call.tenant, request.idempotencyKey]);
    const joined = inFlight.get(place);
    if (joined !== undefined) {
      if (joined.payloadHash !== payloadHash) throw idempotencyConflict(request.idempotencyKey);
      return await whileWanted(joined.result, call.signal);
    }
    const result = runKeyed(request, call.tenant, payloadHash).finally(() => inFlight.delete(place));
    inFlight.set(place, { payloadHash, result });
    return await whileWanted(result, call.signal);
  };
}

/** Cleanup has its own time: the caller's may be over. */
const cleanupCall = (): { readonly signal: AbortSignal } => ({ signal: AbortSignal.timeout(CLEANUP_TIMEOUT_MS) });

const demandOf = (request: CreateSandboxRequest) => ({
  cpus: request.resources.cpus ?? 0,
  memoryBytes: request.resources.memoryBytes ?? 0,
  diskBytes: request.quotaBytes ?? 0,
});

const toPlacementRequest = (request: CreateSandboxRequest) => ({
  ...demandOf(request),
  template: request.template,
  selector: {},
});

const isUnknown = (error: unknown): boolean => SandboxError.from(error).admitted === "unknown";

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

function exhausted(message: string, cause?: SandboxError): SandboxError {
  return new SandboxError("FLEET_EXHAUSTED", message, {
    retryAfterMs: cause?.retryAfterMs ?? RETRY_AFTER_MS,
    ...(cause === undefined ? {} : { cause }),
  });
}

function unknownOutcome(instanceId: string, cause: SandboxError): SandboxError {
  return new SandboxError(
    "HOST_UNREACHABLE",
    `the instance ${instanceId} did not say what became of the create: ${cause.message}`,
    {
      admitted: "unknown",
      metadata: { instanceId },
      cause,
    },
  );
}
