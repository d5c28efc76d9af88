import { SandboxError } from "@turnbox/core";
import type { Containers } from "../container/container.ts";
import type { Records } from "../record/records.ts";
import type { SnapshotRow } from "../record/row.ts";
import type { SettleIntent } from "../session/intent.ts";
import { assertActive } from "../session/phase.ts";
import type { Receipts } from "../session/receipts.ts";
import { inOrder, type Session, within } from "../session/session.ts";
import type { HeadRef, SessionPresence, Storage } from "../storage/storage.ts";

export interface RepairRequest {
  readonly idempotencyKey: string;
  readonly payload: string;
}

export interface RepairResult {
  /** What was done, in plain words; empty if nothing was necessary. */
  readonly actions: readonly string[];
}

interface Call {
  readonly signal: AbortSignal;
}

/**
 * Brings a failed session back to active under a new generation: what was cut off is ended, the container is given up, and
 * files that are gone are made again from the snapshot that they continued from, or from the newest that is there. A
 * session of which nothing is left stays failed. Until the end it is failed, and the same call again goes on.
 */
export type RepairSession = (session: Session, request: RepairRequest, call: Call) => Promise<RepairResult>;

interface Deps {
  readonly records: Records;
  readonly receipts: Receipts;
  readonly storage: Storage;
  readonly containers: Containers;
  readonly settle: SettleIntent;
}

export function createRepairSession(deps: Deps): RepairSession {
  return async (session, request, caller) => {
    const call = within(session, caller);
    const { idempotencyKey: key, payload } = request;
    return await deps.receipts.once<RepairResult>(
      { scope: `${session.row.token}/RepairSession`, key, payload },
      (receiptOf) =>
        inOrder(session, "RepairSession", async () => {
          const { phase } = session.row;
          if (phase.kind === "active" || phase.kind === "paused") return { actions: [] };
          if (phase.kind !== "failed") assertActive(phase, "RepairSession");
          const { head, parent, actions } = await restore(deps, session, call);
          const generation = session.row.generation + 1;
          const result = { actions: [...actions, `raised the generation to ${generation}`] };
          const receipt = receiptOf(result);
          await session.commit(
            (row) => ({
              ...row,
              phase: { kind: "active" },
              generation,
              headGeneration: head.generation,
              container: null,
              parentSnapshot: parent,
            }),
            receipt === undefined ? {} : { receipt },
          );
          return result;
        }),
    );
  };
}

interface Restored {
  readonly head: HeadRef;
  readonly parent: string | null;
  readonly actions: readonly string[];
}

/** Does all that a session needs before it can be active. Each step may find its work done already. */
async function restore(deps: Deps, session: Session, call: Call): Promise<Restored> {
  const { storage, containers } = deps;
  const actions: string[] = [];
  let found = await look(deps, session, call);
  const cutOff = await settleCutOff(deps, session);
  if (cutOff !== null) {
    actions.push(`brought a ${cutOff} to its end that was cut off`);
    found = await look(deps, session, call);
  }
  if (session.row.container !== null) {
    await containers.end(session, call);
    actions.push("ended its container");
  }
  const { head } = session;
  const present = found.heads.find(({ generation }) => generation === head.generation);
  if (present !== undefined) {
    await storage.mountHead(head, call);
    if (present.mounted === "no") actions.push("mounted its files");
    return { head, parent: session.row.parentSnapshot, actions };
  }
  const { row } = session;
  const origin = await chooseOrigin(deps, session, found);
  const made = { token: row.token, generation: row.generation + 1 };
  await storage.createHead(
    {
      ...made,
      origin: { kind: "snapshot", snapshot: { token: origin.token, name: origin.name } },
      marks: { target: origin.id },
      ...(row.refquotaBytes === null ? {} : { refquotaBytes: row.refquotaBytes }),
    },
    call,
  );
  await storage.mountHead(made, call);
  actions.push(`made its files again from snapshot ${origin.id}`);
  return { head: made, parent: origin.id, actions };
}

/** What the storage has of the session, or `INVALID_STATE` if it has nothing. */
async function look({ storage }: Deps, { row }: Session, call: Call): Promise<SessionPresence> {
  const found = (await storage.presence(call)).find(({ token }) => token === row.token);
  if (found === undefined || found.heads.length + found.snapshots.length === 0)
    throw beyondRepair(row.id, "nothing of its files is in the storage, neither the present ones nor a snapshot");
  return found;
}

async function settleCutOff({ records, settle }: Deps, session: Session): Promise<string | null> {
  const intents = await records.call("listIntents", null);
  const intent = intents.find(({ token }) => token === session.row.token);
  // One that the records do not have any more has come to its end.
  if (intent !== undefined) await settle(session, intent);
  session.leftover = null;
  return intent?.kind ?? null;
}

async function chooseOrigin({ records }: Deps, { row }: Session, found: SessionPresence): Promise<SnapshotRow> {
  const known = await records.call("listSnapshots", row.token);
  const there = known.filter(({ name }) => found.snapshots.includes(name));
  const origin = there.find(({ id }) => id === row.parentSnapshot) ?? there.at(-1);
  if (origin === undefined)
    throw beyondRepair(row.id, "its present files are not in the storage, and there is no snapshot to make them from");
  return origin;
}

function beyondRepair(sessionId: string, missing: string): SandboxError {
  return new SandboxError("INVALID_STATE", `the session cannot be repaired: ${missing}; DestroySession remains`, {
    metadata: { sessionId, state: "failed", operation: "RepairSession" },
  });
}
