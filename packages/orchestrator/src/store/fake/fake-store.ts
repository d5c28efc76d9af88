import { type Clock, systemClock } from "@turnbox/core";
import { decidePut } from "../instance-put.ts";
import { giveUpLease, grantLease, isStale, NEVER_LEASED } from "../lease.ts";
import {
  type FencedCall,
  IDEMPOTENCY_RETENTION_MS,
  type IdempotencyBegin,
  type IdempotencyRef,
  type IdempotencyState,
  type InstanceRow,
  type Reservation,
  type SandboxQuery,
  type SandboxRow,
  type Store,
  type StoreCall,
} from "../store.ts";
import { staleEpoch } from "../stale-epoch.ts";

interface KeyRow extends IdempotencyBegin {
  readonly result: string | undefined;
}

const keyOf = (ref: IdempotencyRef): string => JSON.stringify([ref.tenant, ref.method, ref.key]);

interface DemandRow {
  readonly waitingCreates: number;
  readonly expiresAtMs: number;
}

/** A store in memory, for tests and for a fleet that need not remember. */
export function createFakeStore({ clock = systemClock }: { readonly clock?: Clock } = {}): Store {
  let lease = NEVER_LEASED;
  const demands = new Map<string, DemandRow>();
  const instances = new Map<string, InstanceRow>();
  const sandboxes = new Map<string, SandboxRow>();
  const keys = new Map<string, KeyRow>();

  const byName = (tenant: string, name: string): SandboxRow | undefined =>
    [...sandboxes.values()].find((row) => row.tenant === tenant && row.name === name);

  const answer = async <T>(call: StoreCall, work: () => T): Promise<T> => {
    call.signal.throwIfAborted();
    await Promise.resolve();
    return work();
  };

  const fenced = <T>(call: FencedCall, work: () => T): Promise<T> =>
    answer(call, () => {
      if (isStale(call.epoch, lease)) throw staleEpoch(call.epoch);
      return work();
    });

  return {
    acquireLease: (request, call) =>
      answer(call, () => {
        const granted = grantLease(lease, request, clock.nowMs());
        if (granted === undefined) return undefined;
        lease = granted;
        return { holder: request.holder, epoch: granted.epoch };
      }),
    releaseLease: (given, call) =>
      answer(call, () => {
        lease = giveUpLease(lease, given);
      }),

    putDemand: ({ holder, waitingCreates, ttlMs }, call) =>
      answer(call, () => void demands.set(holder, { waitingCreates, expiresAtMs: clock.nowMs() + ttlMs })),
    waitingCreates: (call) =>
      answer(call, () => {
        const nowMs = clock.nowMs();
        for (const [holder, row] of demands) if (row.expiresAtMs <= nowMs) demands.delete(holder);
        return [...demands.values()].reduce((sum, row) => sum + row.waitingCreates, 0);
      }),

    putInstance: (row, call) =>
      fenced(call, () => {
        const next = decidePut(instances.get(row.instanceId), row);
        if (typeof next === "string") return next;
        instances.set(row.instanceId, next);
        return "put";
      }),
    listInstances: (call) =>
      answer(call, () => [...instances.values()].sort((a, b) => (a.instanceId < b.instanceId ? -1 : 1))),
    deleteInstance: (instanceId, call) =>
      fenced(call, () => {
        instances.delete(instanceId);
        for (const [sessionId, row] of sandboxes) if (row.instanceId === instanceId) sandboxes.delete(sessionId);
      }),

    reserveSandbox: (row, call) =>
      answer(call, (): Reservation => {
        if (sandboxes.has(row.sessionId)) return { kind: "reserved" };
        const by = row.name === undefined ? undefined : byName(row.tenant, row.name);
        if (by !== undefined) return { kind: "name_taken", by };
        sandboxes.set(row.sessionId, row);
        return { kind: "reserved" };
      }),
    placeSandbox: ({ sessionId, instanceId, phase, from }, call) =>
      answer(call, () => {
        const row = sandboxes.get(sessionId);
        if (row === undefined || (row.instanceId !== from && row.instanceId !== instanceId)) return "changed";
        const isThere = row.instanceId === instanceId && row.phase === "created";
        sandboxes.set(sessionId, { ...row, instanceId, phase: isThere ? "created" : phase });
        return "placed";
      }),
    withdrawSandbox: ({ sessionId, from, key }, call) =>
      answer(call, () => {
        const row = sandboxes.get(sessionId);
        if (row !== undefined && row.instanceId !== from) return "changed";
        sandboxes.delete(sessionId);
        const planned = key === undefined ? undefined : keys.get(keyOf(key));
        if (key !== undefined && planned?.plan === sessionId && planned.result === undefined) keys.delete(keyOf(key));
        return "withdrawn";
      }),
    getSandbox: (sessionId, call) => answer(call, () => sandboxes.get(sessionId)),
    findSandboxes: ({ tenant, name }, call) =>
      answer(call, () =>
        [...sandboxes.values()].filter((row) => row.tenant === tenant && (row.name === name || row.sessionId === name)),
      ),
    getSandboxes: (sessionIds, call) =>
      answer(call, () => sessionIds.flatMap((sessionId) => sandboxes.get(sessionId) ?? [])),
    listSandboxes: (query: SandboxQuery, call) =>
      answer(call, () =>
        [...sandboxes.values()]
          .filter((row) => row.tenant === query.tenant && row.sessionId > query.after)
          .filter((row) => query.instanceId === undefined || row.instanceId === query.instanceId)
          .sort((a, b) => (a.sessionId < b.sessionId ? -1 : 1))
          .slice(0, query.limit),
      ),
    deleteSandbox: (sessionId, call) => answer(call, () => void sandboxes.delete(sessionId)),

    beginIdempotent: (begin, call) =>
      answer(call, (): IdempotencyState => {
        const row = keys.get(keyOf(begin));
        if (row === undefined || row.nowMs + IDEMPOTENCY_RETENTION_MS <= begin.nowMs) {
          keys.set(keyOf(begin), { ...begin, result: undefined });
          return { kind: "begun" };
        }
        if (row.payloadHash !== begin.payloadHash) return { kind: "conflict" };
        return row.result === undefined ? { kind: "pending", plan: row.plan } : { kind: "done", result: row.result };
      }),
    finishIdempotent: (finish, result, call) =>
      answer(call, () => {
        const row = keys.get(keyOf(finish));
        if (row?.plan !== finish.plan) return "changed";
        keys.set(keyOf(finish), { ...row, result: row.result ?? result });
        return "finished";
      }),
    abandonIdempotent: (ref, call) =>
      answer(call, () => {
        if (keys.get(keyOf(ref))?.result === undefined) keys.delete(keyOf(ref));
      }),
    expireIdempotent: (nowMs, call) =>
      answer(call, () => {
        const old = [...keys].filter(([, row]) => row.nowMs + IDEMPOTENCY_RETENTION_MS <= nowMs);
        for (const [key] of old) keys.delete(key);
        return old.length;
      }),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}
