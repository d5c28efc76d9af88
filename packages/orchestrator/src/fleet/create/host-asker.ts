import { type Clock, hasReason, type Log, type Reason, SandboxError } from "@turnbox/core";
import type { Store } from "../../store/store.ts";
import type { CreatedSandbox } from "../../control/sandbox-control.ts";
import { type CreateAttempt, type Own, takenOver, unknownOutcome } from "./create-attempt.ts";
import type { InstanceRegistry } from "../registry/instance-registry.ts";
import type { WakeHost } from "../registry/wake-host.ts";

export interface SettleCreateOptions {
  readonly registry: InstanceRegistry;
  readonly store: Store;
  readonly wakeHost: WakeHost;
  readonly clock: Clock;
  readonly logger: Log;
}

/** What one host is asked about one create. */
export interface SettleCreate {
  /** Asks one host until its answer is known: a sandbox, or an error that says `admitted: no`. */
  settleOn(instanceId: string, attempt: CreateAttempt, first: "fresh" | "begun"): Promise<CreatedSandbox>;
  /** Ends what this replica made while another one went on with the same sandbox elsewhere: nobody was told of it. */
  giveBack(instanceId: string, attempt: CreateAttempt, own: Own): Promise<void>;
}

/** How often, and after what pauses, the same host is asked again when it is not known what became of a create. */
const RESOLVE_DELAYS_MS: readonly number[] = [200, 500, 1000, 2000, 4000];
/** Refusals before a host looked at the request: they say nothing about an earlier, unanswered one. */
const AT_THE_DOOR: readonly Reason[] = [
  "HOST_UNREACHABLE",
  "OVERLOADED",
  "RATE_LIMITED",
  "SHUTTING_DOWN",
  "UNAUTHENTICATED",
];

export function createSettleCreate({ registry, store, wakeHost, clock, logger }: SettleCreateOptions): SettleCreate {
  const askHost = async (instanceId: string, { request, sessionId, call }: CreateAttempt): Promise<CreatedSandbox> => {
    const connection = await wakeHost(instanceId, call);
    const { name: _name, ...rest } = request;
    try {
      return await connection.createSandbox({ ...rest, sessionId, idempotencyKey: `create-${sessionId}` }, call);
    } catch (error) {
      // The id is ours alone, so a session of this id is the one that an earlier try made.
      if (!hasReason(error, "SESSION_EXISTS")) throw error;
      const made = await connection.getSandbox({ sandboxId: sessionId }, call).catch((missing: unknown) => {
        if (hasReason(missing, "SANDBOX_NOT_FOUND")) return undefined;
        throw missing;
      });
      if (made?.session.state === "active") return made;
      // A host that starts again takes back what a crash has cut off: then it can be made.
      const state = made?.session.state ?? "just being removed";
      throw new SandboxError("HOST_UNREACHABLE", `the session is ${state}`, { admitted: "unknown" });
    }
  };

  /** Another replica may have found out meanwhile that nothing came of it, and begun elsewhere. */
  const stillMine = async (instanceId: string, { sessionId, call }: CreateAttempt): Promise<void> => {
    const placing = { sessionId, instanceId, phase: "creating", from: instanceId } as const;
    const placed = await store.placeSandbox(placing, call).catch((error: unknown) => {
      throw unknownOutcome(instanceId, SandboxError.from(error));
    });
    if (placed === "changed") throw takenOver();
  };

  const settleOn = async (
    instanceId: string,
    attempt: CreateAttempt,
    first: "fresh" | "begun",
  ): Promise<CreatedSandbox> => {
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
      await stillMine(instanceId, attempt);
    }
    throw new SandboxError("INTERNAL", "the tries ended without an answer");
  };

  const giveBack = async (instanceId: string, { sessionId, call }: CreateAttempt, own: Own): Promise<void> => {
    const request = { sandboxId: sessionId, idempotencyKey: `withdraw-${sessionId}` };
    try {
      await registry.connection(instanceId).destroySandbox(request, { ...own, tenant: call.tenant });
    } catch (error) {
      if (hasReason(error, "SANDBOX_NOT_FOUND", "INSTANCE_NOT_FOUND")) return;
      logger.error({ err: SandboxError.from(error), instanceId, sessionId }, "a sandbox that nobody knows may be left");
    }
  };

  return { settleOn, giveBack };
}
