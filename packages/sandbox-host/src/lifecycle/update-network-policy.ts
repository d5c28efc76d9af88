import { SandboxError } from "@turnbox/core";
import type { Logger } from "pino";
import type { Containers } from "../container/container.ts";
import { assertEnforceable, DENY_ALL, needsNetwork, type NetworkPolicy } from "../network-policy/policy.ts";
import type { Network } from "../network/network.ts";
import type { Runtime } from "../runtime/runtime.ts";
import { assertGeneration } from "../session/generation.ts";
import { assertActive } from "../session/phase.ts";
import { policyMarks } from "../session/policy-marks.ts";
import type { Receipts } from "../session/receipts.ts";
import { inOrder, type Session, within } from "../session/session.ts";
import type { Storage } from "../storage/storage.ts";

export interface UpdatePolicyRequest {
  readonly idempotencyKey: string;
  readonly payload: string;
  readonly expectedGeneration: number | undefined;
  readonly policy: NetworkPolicy;
}

interface Call {
  readonly signal: AbortSignal;
}

/**
 * Replaces the policy of a session, open connections included. It is in force when it is answered. A sandbox that was booted
 * without any network gets one by a new boot on the same files: that needs a session in which nothing runs.
 */
export type UpdateNetworkPolicy = (session: Session, request: UpdatePolicyRequest, call: Call) => Promise<void>;

interface Deps {
  readonly receipts: Receipts;
  readonly runtime: Runtime;
  readonly network: Network;
  readonly containers: Containers;
  readonly storage: Pick<Storage, "markSession">;
  readonly log: Logger;
}

/** How long a policy that could not be recorded is given to be put back. */
const UNDO_TIMEOUT_MS = 10_000;
const MARK_TIMEOUT_MS = 10_000;

export function createUpdateNetworkPolicy(deps: Deps): UpdateNetworkPolicy {
  const { receipts, network } = deps;
  return async (session, request, caller) => {
    const { policy, idempotencyKey: key, payload } = request;
    assertEnforceable(policy, network.support);
    const call = within(session, caller);
    await receipts.once<null>({ scope: `${session.row.token}/UpdateNetworkPolicy`, key, payload }, (receiptOf) =>
      inOrder(session, "UpdateNetworkPolicy", async () => {
        const { phase } = session.row;
        if (phase.kind !== "paused" && phase.kind !== "failed") assertActive(phase, "UpdateNetworkPolicy");
        assertGeneration(session, request.expectedGeneration);
        await deps.containers.settled(session);
        const receipt = receiptOf(null);
        const commit = async (more: { readonly container?: null }): Promise<void> => {
          await session.commit(
            (row) => ({ ...row, ...more, networkPolicy: policy }),
            receipt === undefined ? {} : { receipt },
          );
        };
        const { container, networkPolicy: before } = session.row;
        if (container === null || !needsNetwork(policy) || network.isAttached(container)) {
          await enforce(deps, { session, policy, before: before ?? DENY_ALL }, call, () => commit({}));
        } else {
          await replaceIdle(deps, session, call, () => commit({ container: null }));
        }
        await mark(deps, session, policy);
        return null;
      }),
    );
  };
}

/** In force first, recorded then: a policy that cannot be put in force is never said to be. */
async function enforce(
  { network, containers }: Deps,
  change: { readonly session: Session; readonly policy: NetworkPolicy; readonly before: NetworkPolicy },
  call: Call,
  commit: () => Promise<void>,
): Promise<void> {
  const { container } = change.session.row;
  if (container !== null) await network.update(container, change.policy, call);
  try {
    await commit();
  } catch (thrown) {
    const undo = { signal: AbortSignal.timeout(UNDO_TIMEOUT_MS) };
    if (container !== null) await network.update(container, change.before, undo);
    throw thrown;
  }
  // A tool call may have booted a sandbox meanwhile, under the policy of before.
  await containers.settled(change.session);
  const now = change.session.row.container;
  if (now !== null && now !== container) await network.update(now, change.policy, call);
}

/**
 * Has the marks say what is in force, for the rebuilding of lost records. The policy is in force and recorded, whatever
 * becomes of this.
 */
async function mark({ storage, log }: Deps, { row }: Session, policy: NetworkPolicy): Promise<void> {
  const call = { signal: AbortSignal.timeout(MARK_TIMEOUT_MS) };
  await storage.markSession(row.token, policyMarks(policy), call).catch((err: unknown) => {
    log.warn({ err, sessionId: row.id }, "network policy of a session not written to its marks");
  });
}

/** Ends the container of a session in which nothing runs; the next tool call boots one that has a network. */
async function replaceIdle(
  { runtime, containers }: Deps,
  session: Session,
  call: Call,
  commit: () => Promise<void>,
): Promise<void> {
  using _closed = session.gate.close("ROLLBACK_IN_PROGRESS");
  await session.gate.drained({ timeoutMs: 0, signal: call.signal });
  const { container } = session.row;
  if (container !== null && (await runtime.liveness(container, call)) !== "gone") {
    const count = await runtime.processes(container, call);
    if (count > 0) {
      throw new SandboxError(
        "PROCESSES_RUNNING",
        `the sandbox has no network yet and needs a new boot for it, but ${String(count)} processes run in it`,
        { metadata: { processes: String(count) } },
      );
    }
  }
  await containers.end(session, call);
  await commit();
}
