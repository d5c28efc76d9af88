import { type Clock, hasReason, type Log, type Reason, SandboxError } from "@turnbox/core";
import type { HostConnection } from "../../control/host-connection.ts";
import type { ControlCall, CreatedSandbox } from "../../control/sandbox-control.ts";
import type { Store } from "../../store/store.ts";
import type { InstanceRegistry } from "../registry/instance-registry.ts";
import type { WakeHost } from "../registry/wake-host.ts";
import { type CreateAttempt, type Own, takenOver, unknownOnHost } from "./create-attempt.ts";

export interface HostAskerOptions {
  readonly registry: InstanceRegistry;
  readonly store: Store;
  readonly wakeHost: WakeHost;
  readonly clock: Clock;
  readonly logger: Log;
}

/**
 * What one host says about one create.
 *
 * - `made`: the sandbox is there.
 * - `refused`: it is not there, and will not be.
 * - `unknown`: it may be there.
 */
export type HostAnswer =
  | { readonly kind: "made"; readonly sandbox: CreatedSandbox }
  | { readonly kind: "refused"; readonly refusal: SandboxError }
  | { readonly kind: "unknown"; readonly error: SandboxError };

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

/** Asks one host for one create, with the same session id and the same key each time. */
export class HostAsker {
  readonly #options: HostAskerOptions;

  constructor(options: HostAskerOptions) {
    this.#options = options;
  }

  /** Asks until the outcome is known or asking is of no more use. `begun`: an earlier call may have asked this host. */
  async ask(instanceId: string, attempt: CreateAttempt, first: "fresh" | "begun"): Promise<HostAnswer> {
    let mayHaveBegun = first === "begun";
    for (let tries = 0; ; tries += 1) {
      const answer = await this.#askOnce(instanceId, attempt);
      if (!(answer instanceof SandboxError)) return { kind: "made", sandbox: answer };
      const isAtTheDoor = mayHaveBegun && AT_THE_DOOR.includes(answer.reason);
      if (answer.admitted === "no" && !isAtTheDoor) return { kind: "refused", refusal: answer };
      mayHaveBegun = true;
      const error = await this.#pause(RESOLVE_DELAYS_MS[tries], { instanceId, attempt, answer });
      if (error !== undefined) return { kind: "unknown", error };
    }
  }

  /** Ends what this replica made while another one went on with the same sandbox elsewhere: no caller knows of it. */
  async giveBack(instanceId: string, { sessionId, call }: CreateAttempt, own: Own): Promise<void> {
    const { registry, logger } = this.#options;
    const request = { sandboxId: sessionId, idempotencyKey: `withdraw-${sessionId}` };
    try {
      await registry.connection(instanceId).destroySandbox(request, { ...own, tenant: call.tenant });
    } catch (error) {
      if (hasReason(error, "SANDBOX_NOT_FOUND", "INSTANCE_NOT_FOUND")) return;
      logger.error(
        { err: SandboxError.from(error), instanceId, sessionId },
        "a sandbox that is not on record may be left",
      );
    }
  }

  async #askOnce(instanceId: string, attempt: CreateAttempt): Promise<CreatedSandbox | SandboxError> {
    try {
      return await this.#create(instanceId, attempt);
    } catch (thrown) {
      return SandboxError.from(thrown);
    }
  }

  async #create(instanceId: string, { request, sessionId, call }: CreateAttempt): Promise<CreatedSandbox> {
    const host = await this.#options.wakeHost(instanceId, call);
    const { name: _name, ...rest } = request;
    try {
      return await host.createSandbox({ ...rest, sessionId, idempotencyKey: `create-${sessionId}` }, call);
    } catch (error) {
      // The id is ours alone, so a session of this id is the one that an earlier try made.
      if (!hasReason(error, "SESSION_EXISTS")) throw error;
      return await findMade(host, sessionId, call);
    }
  }

  /** Waits until the host is worth asking again; otherwise returns what is to be said of the create. */
  async #pause(
    delayMs: number | undefined,
    { instanceId, attempt, answer }: Unanswered,
  ): Promise<SandboxError | undefined> {
    const { clock, logger, registry } = this.#options;
    const { sessionId, call } = attempt;
    const isOver = (): boolean => call.signal.aborted;
    if (delayMs === undefined || isOver()) return unknownOnHost(instanceId, answer);
    logger.warn({ instanceId, sessionId, reason: answer.reason }, "a create is asked for again");
    await clock.sleep(delayMs, call).catch(() => undefined);
    if (isOver()) return unknownOnHost(instanceId, answer);
    await registry.sync(call).catch(() => undefined);
    return await this.#whyNotOurs(instanceId, attempt);
  }

  /** Another replica may have found out meanwhile that nothing came of it, and begun elsewhere. */
  async #whyNotOurs(instanceId: string, { sessionId, call }: CreateAttempt): Promise<SandboxError | undefined> {
    try {
      const row = await this.#options.store.getSandbox(sessionId, call);
      return row?.instanceId === instanceId ? undefined : takenOver();
    } catch (error) {
      return unknownOnHost(instanceId, SandboxError.from(error));
    }
  }
}

interface Unanswered {
  readonly instanceId: string;
  readonly attempt: CreateAttempt;
  /** What the host said last. */
  readonly answer: SandboxError;
}

/** The session that an earlier try made. A host that starts again takes back what a crash cut off: then it can be made. */
async function findMade(host: HostConnection, sessionId: string, call: ControlCall): Promise<CreatedSandbox> {
  const made = await host.getSandbox({ sandboxId: sessionId }, call).catch((missing: unknown) => {
    if (hasReason(missing, "SANDBOX_NOT_FOUND")) return undefined;
    throw missing;
  });
  if (made?.session.state === "active") return made;
  const state = made?.session.state ?? "just being removed";
  throw new SandboxError("HOST_UNREACHABLE", `the session is ${state}`, { admitted: "unknown" });
}
