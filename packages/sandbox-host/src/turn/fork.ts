import {
  invalidArgument,
  mapConcurrent,
  newSessionId,
  parseSessionId,
  SandboxError,
  type SessionId,
} from "@turnbox/core";
import type { Cordon } from "../cordon/cordon.ts";
import type { Made } from "../lifecycle/create.ts";
import type { Blueprint, Maker } from "../lifecycle/make.ts";
import type { NetworkPolicy } from "../network-policy/policy.ts";
import type { Records } from "../record/records.ts";
import type { ReceiptRow, SessionRow, SnapshotRow } from "../record/row.ts";
import type { ContainerLimits } from "../runtime/runtime.ts";
import { boundLimits, boundTtl, type Ceilings } from "../session/ceilings.ts";
import type { CrashPointHook } from "../session/crash-point.ts";
import { assertGeneration } from "../session/generation.ts";
import type { Intents } from "../session/intent.ts";
import { assertActive } from "../session/phase.ts";
import type { Receipts } from "../session/receipts.ts";
import type { Registry } from "../session/registry.ts";
import { inOrder, type Session, within } from "../session/session.ts";
import type { Storage } from "../storage/storage.ts";
import { findSnapshot } from "./find.ts";
import { assertNoWider, type ForkRights } from "./fork-rights.ts";
import type { Sealing } from "./seal.ts";
import { assertSnapshots } from "./snapshot.ts";

export interface ForkRequest {
  readonly idempotencyKey: string;
  readonly payload: string;
  readonly expectedGeneration: number | undefined;
  /** Null forks the files as they are now. */
  readonly snapshotId: string | null;
  readonly count: number;
  /** One for each child, or none at all. */
  readonly childIds: readonly string[];
  /** What is not given is the parent's. */
  readonly labels: Readonly<Record<string, string>> | null;
  readonly env: Readonly<Record<string, string>> | null;
  readonly limits: ContainerLimits;
  readonly networkPolicy: NetworkPolicy | null;
  /** What the caller may give its children beyond what the parent has. */
  readonly rights: ForkRights;
  readonly ttlMs: number | null;
}

/** The result of one child. */
export type ForkedChild = Made | { readonly reason: SandboxError["reason"]; readonly message: string };

export interface Forked {
  readonly snapshotId: string;
  readonly children: readonly ForkedChild[];
}

interface Outcome {
  readonly child: ForkedChild;
  readonly row?: SessionRow;
}

interface Call {
  readonly signal: AbortSignal;
}

/**
 * Makes new sessions from the files of one: files only, no processes, ports or tool calls. Children are
 * independent of the parent. They become usable together; each that cannot be made has its own reason.
 */
export type ForkSession = (session: Session, request: ForkRequest, call: Call) => Promise<Forked>;

export const MAX_CHILDREN = 100;
/** How many children are made at once: enough to keep the storage busy, few enough not to delay other operations. */
const CONCURRENCY = 4;

interface Parts {
  readonly registry: Registry;
  readonly records: Records;
  readonly receipts: Receipts;
  readonly intents: Intents;
  readonly storage: Storage;
  readonly sealing: Sealing;
  readonly maker: Maker;
  readonly cordon: Pick<Cordon, "enter">;
  readonly assertRoom: (call: Call) => Promise<void>;
  readonly ceilings: Ceilings;
  readonly crashPoint: CrashPointHook;
}

/** A fork under way. */
interface Fork {
  readonly request: ForkRequest;
  readonly ids: readonly SessionId[];
  readonly receiptOf: (forked: Forked) => ReceiptRow | undefined;
}

export function createForkSession(parts: Parts): ForkSession {
  return async (session, request, caller) => {
    assertSnapshots(parts.storage);
    const ids = childIds(request);
    const call = within(session, caller);
    const { idempotencyKey: key, payload } = request;
    return await parts.receipts.once<Forked>(
      { scope: `${session.row.token}/ForkSession`, key, payload },
      async (receiptOf) =>
        await inOrder(session, "ForkSession", async () => {
          assertForkable(session, request);
          assertNoWider(session.row, request);
          await parts.intents.settleLeftover(session);
          return await fork(parts, session, { request, ids, receiptOf }, call);
        }),
    );
  };
}

async function fork(parts: Parts, session: Session, { request, ids, receiptOf }: Fork, call: Call): Promise<Forked> {
  const { records, cordon, assertRoom, maker, ceilings, crashPoint } = parts;
  const given = request.snapshotId === null ? null : await findSnapshot(records, session, request.snapshotId);
  using _entry = cordon.enter();
  await assertRoom(call);
  using reserved = new DisposableStack();
  const origin = given ?? (await sealNow(parts.sealing, session, call));
  await crashPoint("fork.snapshot_taken");
  const outcomes = new Map<SessionId, Outcome>();
  await mapConcurrent(ids, CONCURRENCY, async (id) => {
    const blueprint = blueprintOf(session.row, origin, { ...request, id }, ceilings);
    outcomes.set(id, await makeChild(parts, { blueprint, reserved }, call));
  });
  await crashPoint("fork.children_made");
  const children = ids.flatMap((id) => outcomes.get(id) ?? []);
  const forked = { snapshotId: origin.id, children: children.map(({ child }) => child) };
  const rows = children.flatMap(({ row }) => row ?? []);
  await maker.admit(rows, receiptOf(forked));
  await crashPoint("fork.committed");
  return forked;
}

async function sealNow(sealing: Sealing, session: Session, call: Call): Promise<SnapshotRow> {
  const snapshot = await sealing.describe(session, { kind: "named", title: "fork" });
  await sealing.seal(session, snapshot, {}, call);
  return snapshot;
}

/** Its id stays in `reserved` until all children are admitted, so that no other create takes it meanwhile. */
async function makeChild(
  { registry, maker }: Parts,
  { blueprint, reserved }: { readonly blueprint: Blueprint; readonly reserved: DisposableStack },
  call: Call,
): Promise<Outcome> {
  try {
    reserved.use(registry.reserve(blueprint.id, blueprint.env));
    const row = await maker.make(blueprint, call);
    return { child: { id: row.id, token: row.token }, row };
  } catch (thrown) {
    const { reason, message } = SandboxError.from(thrown);
    return { child: { reason, message } };
  }
}

/** Checked before anything is made: a bad id fails the whole request. */
function childIds({ count, childIds: given }: ForkRequest): readonly SessionId[] {
  if (!Number.isInteger(count) || count < 1 || count > MAX_CHILDREN)
    throw invalidArgument("count", `must be from 1 to ${MAX_CHILDREN}`);
  if (given.length === 0) return Array.from({ length: count }, () => newSessionId());
  if (given.length !== count)
    throw invalidArgument("child_session_ids", `must be empty or ${count} ids, one per child`);
  if (new Set(given).size !== count) throw invalidArgument("child_session_ids", "must all be different");
  return given.map((id) => parseSessionId(id));
}

function assertForkable(session: Session, { expectedGeneration, snapshotId }: ForkRequest): void {
  const { phase } = session.row;
  // A failed session may have no head, but a snapshot has its files.
  const isStill = phase.kind === "paused" || (phase.kind === "failed" && snapshotId !== null);
  if (!isStill) assertActive(phase, "ForkSession");
  assertGeneration(session, expectedGeneration);
}

/**
 * A child: the parent's files, and its settings but for what the request gives. A parent that was made under other ceilings
 * hands on no more than today's.
 */
export function blueprintOf(
  parent: SessionRow,
  origin: SnapshotRow,
  given: Pick<ForkRequest, "labels" | "env" | "limits" | "networkPolicy" | "ttlMs"> & { readonly id: SessionId },
  ceilings: Ceilings,
): Blueprint {
  const { ttlMs, idleTimeoutMs, onTimeout } = parent.timing;
  return {
    id: given.id,
    tenant: parent.tenant,
    base: parent.base,
    origin: { kind: "snapshot", snapshot: { token: origin.token, name: origin.name } },
    labels: given.labels ?? parent.labels,
    env: given.env ?? parent.env,
    limits: boundLimits({ ...parent.limits, ...given.limits }, ceilings),
    time: { ttlMs: boundTtl(given.ttlMs ?? ttlMs, ceilings), idleTimeoutMs, onTimeout },
    ports: [],
    networkPolicy: given.networkPolicy ?? parent.networkPolicy,
    forkedFrom: { sessionId: parent.id, snapshotId: origin.id },
    quotaBytes: parent.quotaBytes,
    refquotaBytes: parent.refquotaBytes,
    turnCounter: parent.turnCounter,
  };
}
