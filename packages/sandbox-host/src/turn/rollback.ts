import { hasReason, SandboxError } from "@turnbox/core";
import type { Logger } from "pino";
import type { Records } from "../record/records.ts";
import type { RollbackIntent, SnapshotRow } from "../record/row.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { Containers } from "../session/container.ts";
import type { Reach } from "../session/crash-point.ts";
import { assertGeneration } from "../session/generation.ts";
import type { Intents } from "../session/intent.ts";
import { assertActive } from "../session/phase.ts";
import type { Receipts } from "../session/receipts.ts";
import { inOrder, type Session, within } from "../session/session.ts";
import type { HeadRef, Storage } from "../storage/storage.ts";
import { findSnapshot } from "./find.ts";
import type { Retention } from "./retain.ts";
import type { Sealing } from "./seal.ts";
import { assertSnapshots } from "./snapshot.ts";
import { snapshotMarks } from "./snapshot-marks.ts";

export interface RollbackRequest {
  readonly idempotencyKey: string;
  readonly payload: string;
  readonly snapshotId: string;
  readonly expectedGeneration: number | undefined;
  /** How long to wait for running tool calls; 0 refuses at once. */
  readonly drainTimeoutMs: number;
  /** What happens to processes that run in the background: they are ended, or the call fails with `PROCESSES_RUNNING`. */
  readonly processes: "stop" | "refuse";
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

interface Call {
  readonly signal: AbortSignal;
}

interface Deps {
  readonly records: Records;
  readonly receipts: Receipts;
  readonly intents: Intents;
  readonly storage: Storage;
  readonly runtime: Runtime;
  readonly containers: Containers;
  readonly sealing: Sealing;
  readonly retention: Retention;
  readonly log: Logger;
  readonly reach: Reach;
  readonly assertRoom: (call: { readonly signal: AbortSignal }) => Promise<void>;
}

const RETIRE_TIMEOUT_MS = 30_000;

export function createRollbackSession(deps: Deps): RollbackSession {
  const { records, receipts, intents, containers } = deps;
  return async (session, request, caller) => {
    assertSnapshots(deps.storage);
    const call = within(session, caller);
    const { idempotencyKey: key, payload } = request;
    return await receipts.once<RollbackResult>(
      { scope: `${session.row.token}/RollbackSession`, key, payload },
      (receiptOf) =>
        inOrder(session, "RollbackSession", async () => {
          assertActive(session.row.phase, "RollbackSession");
          assertGeneration(session, request.expectedGeneration);
          await intents.settleLeftover(session);
          const target = await findSnapshot(records, session, request.snapshotId);
          await deps.assertRoom(call);
          using _closed = session.gate.close("ROLLBACK_IN_PROGRESS");
          await session.gate.drained({ timeoutMs: request.drainTimeoutMs, signal: call.signal });
          // A call that was given up may have left a boot behind; it must not end on the new head's watch.
          await containers.settled(session);
          if (request.processes === "refuse") await assertNoProcesses(deps, session, call);
          const intent = await plan(deps, session);
          const old = { head: session.head, container: session.row.container };
          const result = { undoSnapshotId: intent.undo.id, generation: intent.generation };
          const receipt = receiptOf(result);
          await intents.run(session, intent, async () => {
            await deps.reach("rollback.begun");
            await prepare(deps, { session, target, intent }, call);
            await session.commit(
              (row) => ({
                ...row,
                generation: intent.generation,
                headGeneration: intent.generation,
                container: intent.container,
                parentSnapshot: target.id,
              }),
              { snapshot: intent.undo, intent: "end", ...(receipt === undefined ? {} : { receipt }) },
            );
          });
          await deps.reach("rollback.committed");
          containers.adopt(session, intent.container);
          deps.retention.enforce(session);
          void retire(deps, old);
          return result;
        }),
    );
  };
}

async function plan(deps: Deps, session: Session): Promise<RollbackIntent> {
  const { row } = session;
  const undo = await deps.sealing.describe(session, { kind: "undo" });
  return {
    kind: "rollback",
    token: row.token,
    generation: row.generation + 1,
    undo,
    container: deps.containers.newId(),
  };
}

/** Makes everything the new generation needs. */
async function prepare(
  { storage, runtime, containers, reach }: Deps,
  {
    session,
    target,
    intent,
  }: { readonly session: Session; readonly target: SnapshotRow; readonly intent: RollbackIntent },
  call: Call,
): Promise<void> {
  const { refquotaBytes, container } = session.row;
  if (container !== null) {
    await runtime.pause(container, call).catch((thrown: unknown) => {
      // A sandbox that is gone writes no more.
      if (!hasReason(thrown, "SANDBOX_LOST")) throw thrown;
    });
  }
  await reach("rollback.frozen");
  await storage.mountHead(session.head, call);
  await storage.seal(session.head, intent.undo.name, snapshotMarks(intent.undo), call);
  await reach("rollback.sealed");
  const head = { token: intent.token, generation: intent.generation };
  const { path } = await storage.createHead(
    {
      ...head,
      origin: { kind: "snapshot", snapshot: { token: target.token, name: target.name } },
      marks: { target: target.id },
      ...(refquotaBytes === null ? {} : { refquotaBytes }),
    },
    call,
  );
  await reach("rollback.cloned");
  await containers.boot(session, { head, id: intent.container, path }, call);
  await reach("rollback.booted");
}

/** A frozen or dead sandbox has none that could go on. */
async function assertNoProcesses({ runtime }: Deps, { row }: Session, call: Call): Promise<void> {
  if (row.container === null || (await runtime.liveness(row.container, call)) !== "running") return;
  const count = await runtime.processes(row.container, call);
  if (count === 0) return;
  throw new SandboxError("PROCESSES_RUNNING", `${count} processes run in the session`, {
    metadata: { processes: String(count) },
  });
}

/** The old head holds snapshots and stays; its container ends and it is unmounted. What fails is done at the next start. */
async function retire(deps: Deps, old: { readonly head: HeadRef; readonly container: string | null }): Promise<void> {
  const call = { signal: AbortSignal.timeout(RETIRE_TIMEOUT_MS) };
  try {
    if (old.container !== null) await deps.runtime.stop(old.container, call);
    await deps.storage.unmountHead(old.head, call);
    await deps.reach("rollback.retired");
  } catch (thrown) {
    deps.log.warn({ err: thrown, token: old.head.token }, "an old head is still in use");
  }
}
