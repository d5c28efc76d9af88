import { hasReason, mapConcurrent, SandboxError } from "@turnbox/core";
import type { Logger } from "pino";
import type { Containers } from "../container/container.ts";
import { prewarmSpec } from "../container/prewarm-spec.ts";
import type { Records } from "../record/records.ts";
import type { RollbackIntent, SnapshotRow } from "../record/row.ts";
import type { Runtime } from "../runtime/runtime.ts";
import type { CrashPointHook } from "../session/crash-point.ts";
import { assertGeneration } from "../session/generation.ts";
import type { Intents } from "../session/intent.ts";
import { assertActive } from "../session/phase.ts";
import type { Receipts } from "../session/receipts.ts";
import { inOrder, type Session, within } from "../session/session.ts";
import type { HeadRef, Storage } from "../storage/storage.ts";
import { findSnapshot } from "./find.ts";
import type { Retention } from "./retain.ts";
import type { Sealing } from "./seal.ts";
import { snapshotMarks } from "./snapshot-marks.ts";
import { assertSnapshots } from "./snapshot.ts";

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
 * snapshot and left as it is, and at the same time a clone of the target becomes the new head under the next generation.
 * Until the commit the old head is the live one, and a failure at any step thaws it with all its processes.
 */
export type RollbackSession = (
  session: Session,
  request: RollbackRequest,
  call: RollbackCall,
) => Promise<RollbackResult>;

interface Call {
  readonly signal: AbortSignal;
}

interface RollbackCall extends Call {
  /** Called when the old files are sealed, before that is on record. */
  readonly onSealed?: () => void;
}

interface Plan {
  readonly session: Session;
  readonly target: SnapshotRow;
  readonly intent: RollbackIntent;
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
  readonly crashPoint: CrashPointHook;
  readonly assertRoom: (call: Call) => Promise<void>;
  /** Longest time of a tool call that sets no timeout. */
  readonly toolTimeoutMs: number;
}

const RETIRE_TIMEOUT_MS = 30_000;

export function createRollbackSession(deps: Deps): RollbackSession {
  const { records, receipts, intents, containers } = deps;
  return async (session, request, caller) => {
    assertSnapshots(deps.storage);
    const call = { ...caller, ...within(session, caller) };
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
          let anticipated: Promise<void> | undefined;
          await intents.run(session, intent, async (begun) => {
            await begun;
            await deps.crashPoint("rollback.begun");
            const made = { session, target, intent };
            const make = async (): Promise<void> => {
              await makeNew(deps, made, call);
              anticipated = anticipate(deps, made, call);
              await deps.crashPoint("rollback.booted");
            };
            // The first asks the storage first: what takes long begins at once.
            await mapConcurrent([make, () => sealOld(deps, made, call)], 2, (part) => part());
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
          await deps.crashPoint("rollback.committed");
          containers.adopt(session, intent.container);
          deps.retention.enforce(session);
          containers.retire(session, async () => {
            await anticipated;
            await retire(deps, old);
          });
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
async function makeNew(
  { storage, containers, crashPoint }: Deps,
  { session, target, intent }: Plan,
  call: Call,
): Promise<void> {
  const { refquotaBytes } = session.row;
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
  await crashPoint("rollback.cloned");
  await containers.boot(session, { head, id: intent.container, path, isAwaited: true }, call);
}

/** Gets the new container ready for a command, which is what comes next as a rule. */
async function anticipate({ runtime, toolTimeoutMs }: Deps, { session, intent }: Plan, call: Call): Promise<void> {
  const spec = prewarmSpec(session.row.env, toolTimeoutMs);
  await runtime.prewarm?.anticipate(intent.container, spec, call).catch(() => undefined);
}

/** Freezes the old generation and keeps its files. */
async function sealOld(
  { storage, runtime, crashPoint }: Deps,
  { session, intent }: Plan,
  call: RollbackCall,
): Promise<void> {
  const { container } = session.row;
  if (container !== null) {
    runtime.prewarm?.expectNone(container);
    await freeze(runtime, container, call).catch((thrown: unknown) => {
      // A sandbox that is gone writes no more.
      if (!hasReason(thrown, "SANDBOX_LOST")) throw thrown;
    });
  }
  await crashPoint("rollback.frozen");
  await storage.seal(session.head, intent.undo.name, snapshotMarks(intent.undo), { signal: call.signal });
  call.onSealed?.();
  await crashPoint("rollback.sealed");
}

/** Keeps processes from writing. The gate is closed already, so if none runs there is nothing to freeze. */
async function freeze(runtime: Runtime, container: string, call: Call): Promise<void> {
  if ((await runtime.processes(container, call)) > 0) await runtime.pause(container, call);
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
    await deps.crashPoint("rollback.retired");
  } catch (thrown) {
    deps.log.warn({ err: thrown, token: old.head.token }, "old head still in use");
  }
}
