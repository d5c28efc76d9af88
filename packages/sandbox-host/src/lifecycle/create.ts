import { newSessionId, parseSessionId, SandboxError, type SessionId } from "@turnbox/core";
import type { Cordon } from "../cordon/cordon.ts";
import type { NetworkPolicy } from "../network-policy/policy.ts";
import type { Records } from "../record/records.ts";
import type { ReceiptRow, SessionRow, SnapshotRow } from "../record/row.ts";
import { mayBeSnapshotId } from "../record/snapshot-id.ts";
import type { ContainerLimits } from "../runtime/runtime.ts";
import type { CrashPointHook } from "../session/crash-point.ts";
import type { Receipts } from "../session/receipts.ts";
import type { Registry } from "../session/registry.ts";
import type { Session } from "../session/session.ts";
import type { Templates } from "../template/templates.ts";
import type { Blueprint, Maker, TimePolicy } from "./make.ts";

export interface CreateRequest {
  readonly tenant: string;
  readonly idempotencyKey: string;
  /** The whole request in a canonical form, for the idempotency key. */
  readonly payload: string;
  /** Empty lets the host choose. */
  readonly sessionId: string;
  /** `template`, `template@version`, or the id of a snapshot of the same tenant. */
  readonly base: string;
  readonly quotaBytes: number | null;
  readonly labels: Readonly<Record<string, string>>;
  readonly env: Readonly<Record<string, string>>;
  readonly limits: ContainerLimits;
  readonly time: TimePolicy;
  readonly ports: readonly number[];
  /** Null denies everything. */
  readonly networkPolicy: NetworkPolicy | null;
}

interface Call {
  readonly signal: AbortSignal;
}

/** Sessions that were made before a create asks for one. */
export interface ReadySessions {
  /** Makes one of them into this session, usable with one commit. Undefined if none is ready that fits. */
  provide(
    wanted: Blueprint,
    receiptOf: (row: SessionRow) => ReceiptRow | undefined,
    call: Call,
  ): Promise<SessionRow | undefined>;
}

/**
 * Makes a session. Id and capacity are taken in one step before anything is made; the row is durable as `creating` before
 * the files are; any failure unwinds everything in reverse. A crash in between is undone at the next start.
 */
export type CreateSession = (request: CreateRequest, call: Call) => Promise<Session>;

interface Parts {
  readonly registry: Registry;
  readonly records: Records;
  readonly receipts: Receipts;
  readonly templates: Templates;
  readonly maker: Maker;
  readonly warm: ReadySessions;
  readonly cordon: Pick<Cordon, "enter">;
  /** Throws `POOL_FULL` if the pool takes no new sessions. */
  readonly assertRoom: (call: Call) => Promise<void>;
  readonly crashPoint: CrashPointHook;
}

/** What a session is made from. */
type Source = Pick<Blueprint, "base" | "origin" | "forkedFrom">;

export function createSessionUseCase(parts: Parts): CreateSession {
  return async (request, call) => {
    const { tenant, idempotencyKey: key, payload, sessionId } = request;
    const made = await parts.receipts.once<Made>(
      { scope: `${tenant}/CreateSession`, key, payload },
      async (receiptOf) => {
        const id = sessionId === "" ? newSessionId() : parseSessionId(sessionId);
        return await withSource(parts, request, call, (source) =>
          makeOne(parts, { blueprint: blueprintOf(id, request, source), receiptOf }, call),
        );
      },
    );
    return findMade(parts.registry, made);
  };
}

async function makeOne(
  { cordon, assertRoom, registry, warm, maker, crashPoint }: Parts,
  { blueprint, receiptOf }: { blueprint: Blueprint; receiptOf: (made: Made) => ReceiptRow | undefined },
  call: Call,
): Promise<Made> {
  const { id, env } = blueprint;
  using _entry = cordon.enter();
  await assertRoom(call);
  using _reserved = registry.reserve(id, env);
  const toResult = ({ token }: SessionRow): Made => ({ id, token });
  const ready = await warm.provide(blueprint, (row) => receiptOf(toResult(row)), call);
  if (ready !== undefined) return toResult(ready);
  const row = await maker.make(blueprint, call);
  await maker.admit([row], receiptOf(toResult(row)));
  await crashPoint("create.committed");
  return toResult(row);
}

/** Finds what the session is made from. A snapshot is kept from removal until `work` has ended. */
async function withSource(
  parts: Parts,
  { base, tenant }: CreateRequest,
  call: Call,
  work: (source: Source) => Promise<Made>,
): Promise<Made> {
  const parent = await findOwner(parts, base, tenant);
  if (parent === null) {
    const { name, digest } = await parts.templates.resolve(base, call);
    const template = { name, digest };
    return await work({ base: template, origin: { kind: "base", base: template }, forkedFrom: null });
  }
  return await parent.serial.run(async () => {
    const snapshot = await parts.records.call("findSnapshot", base);
    if (snapshot === null) throw gone(base);
    const { token, name } = snapshot;
    return await work({
      base: parent.row.base,
      origin: { kind: "snapshot", snapshot: { token, name } },
      forkedFrom: { sessionId: parent.row.id, snapshotId: base },
    });
  });
}

/** The session whose snapshot the base names, if it names one that this tenant may see. */
async function findOwner({ records, registry }: Parts, base: string, tenant: string): Promise<Session | null> {
  if (!mayBeSnapshotId(base)) return null;
  const snapshot: SnapshotRow | null = await records.call("findSnapshot", base);
  const owner = registry.all().find(({ row }) => row.token === snapshot?.token && row.tenant === tenant);
  return owner ?? null;
}

function blueprintOf(id: SessionId, request: CreateRequest, source: Source): Blueprint {
  const { time, ports, networkPolicy, tenant, labels, env, limits, quotaBytes } = request;
  const wanted = { id, tenant, labels, env, limits, time, ports, networkPolicy, quotaBytes };
  return { ...wanted, ...source, refquotaBytes: null, turnCounter: 0 };
}

/** What a create's receipt remembers. */
export interface Made {
  readonly id: string;
  readonly token: string;
}

/** The session of a receipt. Its id may belong to another session by now, even of another tenant. */
export function findMade(registry: Pick<Registry, "find">, made: Made): Session {
  const session = registry.find(made.id);
  if (session?.row.token === made.token) return session;
  throw new SandboxError("SESSION_NOT_FOUND", `session ${made.id} of this idempotency key was destroyed`, {
    metadata: { sessionId: made.id },
  });
}

function gone(snapshotId: string): SandboxError {
  return new SandboxError("SNAPSHOT_NOT_FOUND", `snapshot ${snapshotId} is gone`, { metadata: { snapshotId } });
}
