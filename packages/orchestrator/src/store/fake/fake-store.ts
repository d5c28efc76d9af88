import {
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

interface KeyRow extends IdempotencyBegin {
  readonly result: string | undefined;
}

const keyOf = (ref: IdempotencyRef): string => JSON.stringify([ref.tenant, ref.method, ref.key]);

/** A store in memory, for tests and for a fleet that need not remember. */
export function createFakeStore(): Store {
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

  return {
    putInstance: (row, call) => answer(call, () => void instances.set(row.instanceId, row)),
    listInstances: (call) =>
      answer(call, () => [...instances.values()].sort((a, b) => (a.instanceId < b.instanceId ? -1 : 1))),
    deleteInstance: (instanceId, call) => answer(call, () => void instances.delete(instanceId)),

    reserveSandbox: (row, call) =>
      answer(call, (): Reservation => {
        if (sandboxes.has(row.sessionId)) return { kind: "reserved" };
        const by = row.name === undefined ? undefined : byName(row.tenant, row.name);
        if (by !== undefined) return { kind: "name_taken", by };
        sandboxes.set(row.sessionId, row);
        return { kind: "reserved" };
      }),
    placeSandbox: ({ sessionId, instanceId, phase }, call) =>
      answer(call, () => {
        const row = sandboxes.get(sessionId);
        if (row !== undefined) sandboxes.set(sessionId, { ...row, instanceId, phase });
      }),
    getSandbox: (sessionId, call) => answer(call, () => sandboxes.get(sessionId)),
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
    finishIdempotent: (ref, result, call) =>
      answer(call, () => {
        const row = keys.get(keyOf(ref));
        if (row !== undefined && row.result === undefined) keys.set(keyOf(ref), { ...row, result });
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
