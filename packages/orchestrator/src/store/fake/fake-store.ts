import { type Clock, systemClock } from "@turnbox/core";
import { decidePut } from "../instance-put.ts";
import { giveUpLease, grantLease, isStale, NEVER_LEASED } from "../lease.ts";
import { staleEpoch } from "../stale-epoch.ts";
import {
  type CreateBegin,
  type CreateBegun,
  type CreateFinish,
  type Demand,
  type FencedCall,
  IDEMPOTENCY_RETENTION_MS,
  type IdempotencyBegin,
  type IdempotencyFinish,
  type IdempotencyRef,
  type IdempotencyState,
  type InstanceRow,
  type Lease,
  type LeaseRequest,
  type SandboxNameQuery,
  type SandboxPlacing,
  type SandboxQuery,
  type SandboxRow,
  type SandboxWithdrawal,
  type Store,
  type StoreCall,
} from "../store.ts";

interface KeyRow extends IdempotencyBegin {
  readonly result: string | undefined;
}

interface DemandRow {
  readonly waitingCreates: number;
  readonly expiresAtMs: number;
}

const keyOf = (ref: IdempotencyRef): string => JSON.stringify([ref.tenant, ref.method, ref.key]);

/** A store in memory, for tests and for a fleet that need not remember. */
export function createFakeStore({ clock = systemClock }: { readonly clock?: Clock } = {}): Store {
  return new FakeStore(clock);
}

class FakeStore implements Store {
  readonly #clock: Clock;
  readonly #demands = new Map<string, DemandRow>();
  readonly #instances = new Map<string, InstanceRow>();
  readonly #sandboxes = new Map<string, SandboxRow>();
  readonly #keys = new Map<string, KeyRow>();
  #lease = NEVER_LEASED;

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  acquireLease(request: LeaseRequest, call: StoreCall): Promise<Lease | undefined> {
    return answer(call, () => {
      const granted = grantLease(this.#lease, request, this.#clock.nowMs());
      if (granted === undefined) return undefined;
      this.#lease = granted;
      return { holder: request.holder, epoch: granted.epoch };
    });
  }

  releaseLease(given: Lease, call: StoreCall): Promise<void> {
    return answer(call, () => {
      this.#lease = giveUpLease(this.#lease, given);
    });
  }

  putDemand({ holder, waitingCreates, ttlMs }: Demand, call: StoreCall): Promise<void> {
    return answer(call, () => {
      this.#demands.set(holder, { waitingCreates, expiresAtMs: this.#clock.nowMs() + ttlMs });
    });
  }

  waitingCreates(call: StoreCall): Promise<number> {
    return answer(call, () => {
      const nowMs = this.#clock.nowMs();
      for (const [holder, row] of this.#demands) if (row.expiresAtMs <= nowMs) this.#demands.delete(holder);
      return [...this.#demands.values()].reduce((sum, row) => sum + row.waitingCreates, 0);
    });
  }

  putInstance(row: InstanceRow, call: FencedCall): Promise<"put" | "changed"> {
    return this.#fenced(call, () => {
      const next = decidePut(this.#instances.get(row.instanceId), row);
      if (typeof next === "string") return next;
      this.#instances.set(row.instanceId, next);
      return "put";
    });
  }

  listInstances(call: StoreCall): Promise<readonly InstanceRow[]> {
    return answer(call, () => [...this.#instances.values()].sort((a, b) => (a.instanceId < b.instanceId ? -1 : 1)));
  }

  deleteInstance(instanceId: string, call: FencedCall): Promise<void> {
    return this.#fenced(call, () => {
      this.#instances.delete(instanceId);
      for (const [id, row] of this.#sandboxes) if (row.instanceId === instanceId) this.#sandboxes.delete(id);
    });
  }

  beginCreate({ row, key }: CreateBegin, call: StoreCall): Promise<CreateBegun> {
    return answer(call, (): CreateBegun => {
      const state = key === undefined ? undefined : this.#beginKey({ ...key, plan: row.sessionId });
      if (state?.kind === "done" || state?.kind === "conflict") return state;
      const planned = state?.kind === "pending" ? { ...row, sessionId: state.plan, instanceId: undefined } : row;
      const reserved = this.#reserve(planned);
      if ("by" in reserved) {
        if (key !== undefined) this.#keys.delete(keyOf(key));
        return { kind: "name_taken", by: reserved.by };
      }
      return state?.kind === "pending" ? { kind: "resumed", row: reserved.row } : { kind: "reserved" };
    });
  }

  placeSandbox({ sessionId, instanceId, from }: SandboxPlacing, call: StoreCall): Promise<"placed" | "changed"> {
    return answer(call, () => {
      const row = this.#sandboxes.get(sessionId);
      if (row === undefined || (row.instanceId !== from && row.instanceId !== instanceId)) return "changed";
      const isThere = row.instanceId === instanceId && row.phase === "created";
      this.#sandboxes.set(sessionId, { ...row, instanceId, phase: isThere ? "created" : "creating" });
      return "placed";
    });
  }

  finishCreate({ sessionId, instanceId, key, result }: CreateFinish, call: StoreCall): Promise<"finished" | "changed"> {
    return answer(call, () => {
      const row = this.#sandboxes.get(sessionId);
      if (row?.instanceId !== instanceId) return "changed";
      if (key !== undefined && this.#finishKey({ ...key, plan: sessionId }, result) === "changed") return "changed";
      this.#sandboxes.set(sessionId, { ...row, phase: "created" });
      return "finished";
    });
  }

  withdrawSandbox({ sessionId, from, key }: SandboxWithdrawal, call: StoreCall): Promise<"withdrawn" | "changed"> {
    return answer(call, () => {
      const row = this.#sandboxes.get(sessionId);
      if (row !== undefined && row.instanceId !== from) return "changed";
      this.#sandboxes.delete(sessionId);
      if (key !== undefined && this.#keys.get(keyOf(key))?.plan === sessionId) this.#dropKey(key);
      return "withdrawn";
    });
  }

  getSandbox(sessionId: string, call: StoreCall): Promise<SandboxRow | undefined> {
    return answer(call, () => this.#sandboxes.get(sessionId));
  }

  findSandboxes({ tenant, name }: SandboxNameQuery, call: StoreCall): Promise<readonly SandboxRow[]> {
    return answer(call, () =>
      [...this.#sandboxes.values()].filter(
        (row) => row.tenant === tenant && (row.name === name || row.sessionId === name),
      ),
    );
  }

  getSandboxes(sessionIds: readonly string[], call: StoreCall): Promise<readonly SandboxRow[]> {
    return answer(call, () => sessionIds.flatMap((sessionId) => this.#sandboxes.get(sessionId) ?? []));
  }

  listSandboxes(query: SandboxQuery, call: StoreCall): Promise<readonly SandboxRow[]> {
    return answer(call, () =>
      [...this.#sandboxes.values()]
        .filter((row) => row.tenant === query.tenant && row.sessionId > query.after)
        .filter((row) => query.instanceId === undefined || row.instanceId === query.instanceId)
        .sort((a, b) => (a.sessionId < b.sessionId ? -1 : 1))
        .slice(0, query.limit),
    );
  }

  deleteSandbox(sessionId: string, call: StoreCall): Promise<void> {
    return answer(call, () => {
      this.#sandboxes.delete(sessionId);
    });
  }

  beginIdempotent(begin: IdempotencyBegin, call: StoreCall): Promise<IdempotencyState> {
    return answer(call, () => this.#beginKey(begin));
  }

  finishIdempotent(finish: IdempotencyFinish, result: string, call: StoreCall): Promise<"finished" | "changed"> {
    return answer(call, () => this.#finishKey(finish, result));
  }

  abandonIdempotent(ref: IdempotencyRef, call: StoreCall): Promise<void> {
    return answer(call, () => {
      this.#dropKey(ref);
    });
  }

  expireIdempotent(nowMs: number, call: StoreCall): Promise<number> {
    return answer(call, () => {
      const old = [...this.#keys].filter(([, row]) => row.nowMs + IDEMPOTENCY_RETENTION_MS <= nowMs);
      for (const [key] of old) this.#keys.delete(key);
      return old.length;
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await Promise.resolve();
  }

  #fenced<T>(call: FencedCall, work: () => T): Promise<T> {
    return answer(call, () => {
      if (isStale(call.epoch, this.#lease)) throw staleEpoch(call.epoch);
      return work();
    });
  }

  #reserve(row: SandboxRow): { readonly row: SandboxRow } | { readonly by: SandboxRow } {
    const known = this.#sandboxes.get(row.sessionId);
    if (known !== undefined) return { row: known };
    const isNamesake = (one: SandboxRow): boolean => one.tenant === row.tenant && one.name === row.name;
    const by = row.name === undefined ? undefined : [...this.#sandboxes.values()].find(isNamesake);
    if (by !== undefined) return { by };
    this.#sandboxes.set(row.sessionId, row);
    return { row };
  }

  #beginKey(begin: IdempotencyBegin): IdempotencyState {
    const row = this.#keys.get(keyOf(begin));
    if (row === undefined || row.nowMs + IDEMPOTENCY_RETENTION_MS <= begin.nowMs) {
      this.#keys.set(keyOf(begin), { ...begin, result: undefined });
      return { kind: "begun" };
    }
    if (row.payloadHash !== begin.payloadHash) return { kind: "conflict" };
    return row.result === undefined ? { kind: "pending", plan: row.plan } : { kind: "done", result: row.result };
  }

  #finishKey(finish: IdempotencyFinish, result: string): "finished" | "changed" {
    const row = this.#keys.get(keyOf(finish));
    if (row?.plan !== finish.plan) return "changed";
    this.#keys.set(keyOf(finish), { ...row, result: row.result ?? result });
    return "finished";
  }

  #dropKey(ref: IdempotencyRef): void {
    if (this.#keys.get(keyOf(ref))?.result === undefined) this.#keys.delete(keyOf(ref));
  }
}

async function answer<T>(call: StoreCall, work: () => T): Promise<T> {
  call.signal.throwIfAborted();
  await Promise.resolve();
  return work();
}
