import { type Clock, SandboxError } from "@turnbox/core";
import type { Logger } from "pino";
import type { Records } from "../record/records.ts";
import type { SnapshotRow } from "../record/row.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { Containers } from "../session/container.ts";
import { assertGeneration } from "../session/generation.ts";
import { assertActive } from "../session/phase.ts";
import type { Receipts } from "../session/receipts.ts";
import type { Session } from "../session/session.ts";
import type { HeadRef, Storage } from "../storage/storage.ts";
import { snapshotMarks } from "./complete.ts";
import { newSnapshotId, nextSnapshotName } from "./snapshot-id.ts";

export interface RollbackRequest {
  readonly idempotencyKey: string;
  readonly payload: string;
  readonly snapshotId: string;
  readonly expectedGeneration: number | undefined;
  /** How long to wait for running tool calls; 0 refuses at once. */
  readonly drainTimeoutMs: number;
}

export interface RollbackResult {
  readonly undoSnapshotId: string;
  readonly generation: number;
}

/**
 * Brings a session's files back to a snapshot without destroying anything: the old head is frozen, sealed as the undo
 * snapshot and left as it is, a clone of the target becomes the new head under the next generation. Until the commit the
 * old head is the live one, and a failure at any step thaws it with all its processes.
 */
export type RollbackSession = (
  session: Session,
  request: RollbackRequest,
  call: { readonly signal: AbortSignal },
) => Promise<RollbackResult>;

interface Deps {
  readonly records: Records;
  readonly receipts: Receipts;
  readonly storage: Storage;
  readonly runtime: Runtime;
  readonly containers: Containers;
  readonly clock: Clock;
  readonly log: Logger;
  readonly assertRoom: (call: { readonly signal: AbortSignal }) => Promise<void>;
}

/** Cleanup has its own time; the caller's signal may be what made it necessary. */
const CLEANUP_TIMEOUT_MS = 30_000;

export function createRollbackSession(deps: Deps): RollbackSession {
  const { records, receipts } = deps;
  return async (session, request, call) => {
    if (deps.storage.capabilities.snapshots === "unsupported") {
      throw new SandboxError("SNAPSHOTS_NOT_AVAILABLE", "this host's storage has no snapshots to go back to");
    }
    const keyed = {
      scope: `${session.row.token}/RollbackSession`,
      key: request.idempotencyKey,
      payload: request.payload,
    };
    return await receipts.once<RollbackResult>(keyed, (receipt) =>
      session.serial.run(async () => {
        assertActive(session.row.phase, "RollbackSession");
        assertGeneration(session, request.expectedGeneration);
        const target = await findSnapshot(records, session, request.snapshotId);
        await deps.assertRoom(call);
        using _closed = session.gate.close("ROLLBACK_IN_PROGRESS");
        await session.gate.drained({ timeoutMs: request.drainTimeoutMs, signal: call.signal });
        const plan = await planRollback(deps, session, target);
        const container = await prepare(deps, plan, call);
        const result = { undoSnapshotId: plan.undo.id, generation: plan.head.generation };
        const old = { head: session.head, container: session.row.container };
        const done = receipt(result);
        await session.commit(
          (row) => ({
            ...row,
            generation: plan.head.generation,
            headGeneration: plan.head.generation,
            container,
            parentSnapshot: target.id,
          }),
          { snapshot: plan.undo, intent: "end", ...(done === undefined ? {} : { receipt: done }) },
        );
        deps.containers.adopt(session, container);
        void retire(deps, old);
        return result;
      }),
    );
  };
}

/** The session's snapshot of this id, or `SNAPSHOT_NOT_FOUND`. */
export async function findSnapshot(records: Records, session: Session, snapshotId: string): Promise<SnapshotRow> {
  const snapshots = await records.call("listSnapshots", session.row.token);
  const found = snapshots.find(({ id }) => id === snapshotId);
  if (found === undefined) {
    throw new SandboxError("SNAPSHOT_NOT_FOUND", `the session has no snapshot ${JSON.stringify(snapshotId)}`, {
      metadata: { snapshotId },
    });
  }
  return found;
}

interface Plan {
  readonly session: Session;
  readonly target: SnapshotRow;
  readonly undo: SnapshotRow;
  readonly head: HeadRef;
}

async function planRollback(deps: Deps, session: Session, target: SnapshotRow): Promise<Plan> {
  const { row } = session;
  const undo: SnapshotRow = {
    id: newSnapshotId(),
    token: row.token,
    name: await nextSnapshotName(deps.records),
    kind: "undo",
    turnNumber: null,
    turnKey: null,
    outcome: null,
    createdAtMs: deps.clock.nowMs(),
    parent: row.parentSnapshot,
    generation: row.generation,
  };
  return { session, target, undo, head: { token: row.token, generation: row.generation + 1 } };
}

/** Makes everything the new generation needs and answers with its container; undoes all of it on a failure. */
async function prepare(deps: Deps, plan: Plan, call: { readonly signal: AbortSignal }): Promise<string> {
  const { storage, runtime, records } = deps;
  const { session, target, undo, head } = plan;
  const { refquotaBytes, container: oldContainer } = session.row;
  await records.call("beginIntent", { kind: "rollback", token: head.token, generation: head.generation, undo });
  try {
    if (oldContainer !== null && (await runtime.liveness(oldContainer, call)) === "running") {
      await runtime.pause(oldContainer, call);
    }
    await storage.mountHead(session.head, call);
    await storage.seal(session.head, undo.name, snapshotMarks(undo), call);
    await storage.createHead(
      {
        ...head,
        origin: { kind: "snapshot", snapshot: { token: target.token, name: target.name } },
        marks: { target: target.id },
        ...(refquotaBytes === null ? {} : { refquotaBytes }),
      },
      call,
    );
    return await deps.containers.boot(session, head, call);
  } catch (thrown) {
    await undoRollback(deps, { head, undo, oldContainer });
    throw thrown;
  }
}

/** Removes what a rollback made before its commit and thaws the old head. Each step may find its work done already. */
export async function undoRollback(
  deps: Pick<Deps, "records" | "storage" | "runtime" | "log">,
  made: { readonly head: HeadRef; readonly undo: SnapshotRow; readonly oldContainer: string | null },
): Promise<void> {
  const call = { signal: AbortSignal.timeout(CLEANUP_TIMEOUT_MS) };
  if (made.oldContainer !== null && (await deps.runtime.liveness(made.oldContainer, call)) === "paused") {
    await deps.runtime.resume(made.oldContainer, call);
  }
  await deps.storage.destroyHead(made.head, call);
  await deps.storage.destroySnapshot({ token: made.undo.token, name: made.undo.name }, call);
  await deps.records.call("endIntent", made.undo.token);
}

/** The old head holds snapshots and stays; its container ends and it is unmounted. What fails is done at the next start. */
async function retire(deps: Deps, old: { readonly head: HeadRef; readonly container: string | null }): Promise<void> {
  const call = { signal: AbortSignal.timeout(CLEANUP_TIMEOUT_MS) };
  try {
    if (old.container !== null) await deps.runtime.stop(old.container, call);
    await deps.storage.unmountHead(old.head, call);
  } catch (thrown) {
    deps.log.warn({ err: thrown, token: old.head.token }, "an old head is still in use");
  }
}
