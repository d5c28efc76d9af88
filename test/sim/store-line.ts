import { SandboxError } from "@turnbox/core";
import type { InstanceRow, Store } from "../../packages/orchestrator/src/store/store.ts";
import type { SimProcess } from "./sim-process.ts";
import { send } from "./wire.ts";
import type { SimWorld } from "./world.ts";

/** Is told of what orchestrators write down. */
export interface StoreWatch {
  /** At the moment of the call: this is where the orchestrator has decided to ask for the sandbox. */
  placing(process: SimProcess, sessionId: string, instanceId: string): void;
  leased(epoch: number): void;
  instancePut(row: InstanceRow, epoch: number | undefined): void;
  instanceDeleted(instanceId: string, epoch: number | undefined): void;
}

const PATIENCE_MS = 10_000;

/**
 * One orchestrator's way to the store that all share. The store does each operation whole or not at all; whether it did
 * is not always said.
 */
export function createStoreLine(options: {
  readonly world: SimWorld;
  readonly process: SimProcess;
  readonly store: Store;
  readonly watch: StoreWatch;
}): Store {
  const { world, process, store, watch } = options;
  const { chance, trace } = world;
  const forever = new AbortController().signal;

  const through = <T>({ signal }: { readonly signal: AbortSignal }, work: () => Promise<T>): Promise<T> =>
    send(world, {
      process,
      signal,
      patienceMs: PATIENCE_MS,
      cut: () => "open",
      serve: async () => {
        if (chance.happens(world.weather.storeRefusal)) throw unavailable("no");
        const result = await work();
        if (chance.happens(world.weather.storeUnknown)) throw unavailable("unknown");
        return result;
      },
    });
  const own = <C extends { readonly signal: AbortSignal }>(call: C): C => ({ ...call, signal: forever });

  return {
    acquireLease: (request, call) =>
      through(call, async () => {
        const lease = await store.acquireLease(request, own(call));
        if (lease !== undefined) watch.leased(lease.epoch);
        return lease;
      }),
    releaseLease: (lease, call) => through(call, () => store.releaseLease(lease, own(call))),
    putDemand: (demand, call) => through(call, () => store.putDemand(demand, own(call))),
    waitingCreates: (call) => through(call, () => store.waitingCreates(own(call))),
    putInstance: (row, call) =>
      through(call, async () => {
        const put = await store.putInstance(row, own(call));
        if (put === "put") watch.instancePut(row, call.epoch);
        return put;
      }),
    listInstances: (call) => through(call, () => store.listInstances(own(call))),
    deleteInstance: (instanceId, call) =>
      through(call, async () => {
        await store.deleteInstance(instanceId, own(call));
        watch.instanceDeleted(instanceId, call.epoch);
      }),
    beginCreate: (begin, call) => {
      const { sessionId, instanceId } = begin.row;
      if (instanceId !== undefined) watch.placing(process, sessionId, instanceId);
      return through(call, async () => {
        const begun = await store.beginCreate(begin, own(call));
        trace.add(`store: ${process.name} begins ${sessionId} on ${instanceId ?? "no host"}: ${begun.kind}`);
        return begun;
      });
    },
    placeSandbox: (placed, call) => {
      watch.placing(process, placed.sessionId, placed.instanceId);
      return through(call, async () => {
        const outcome = await store.placeSandbox(placed, own(call));
        trace.add(`store: ${process.name} places ${placed.sessionId} on ${placed.instanceId}: ${outcome}`);
        return outcome;
      });
    },
    finishCreate: (finish, call) =>
      through(call, async () => {
        const outcome = await store.finishCreate(finish, own(call));
        trace.add(`store: ${process.name} finishes ${finish.sessionId} on ${finish.instanceId}: ${outcome}`);
        return outcome;
      }),
    withdrawSandbox: (withdrawn, call) =>
      through(call, async () => {
        const outcome = await store.withdrawSandbox(withdrawn, own(call));
        trace.add(`store: ${process.name} withdraws ${withdrawn.sessionId}: ${outcome}`);
        return outcome;
      }),
    getSandbox: (sessionId, call) => through(call, () => store.getSandbox(sessionId, own(call))),
    findSandboxes: (query, call) => through(call, () => store.findSandboxes(query, own(call))),
    getSandboxes: (ids, call) => through(call, () => store.getSandboxes(ids, own(call))),
    listSandboxes: (query, call) => through(call, () => store.listSandboxes(query, own(call))),
    deleteSandbox: (sessionId, call) => through(call, () => store.deleteSandbox(sessionId, own(call))),
    beginIdempotent: (begin, call) => through(call, () => store.beginIdempotent(begin, own(call))),
    finishIdempotent: (ref, result, call) => through(call, () => store.finishIdempotent(ref, result, own(call))),
    abandonIdempotent: (ref, call) => through(call, () => store.abandonIdempotent(ref, own(call))),
    expireIdempotent: (nowMs, call) => through(call, () => store.expireIdempotent(nowMs, own(call))),
    [Symbol.asyncDispose]: () => Promise.resolve(),
  };
}

const unavailable = (admitted: "no" | "unknown"): SandboxError =>
  new SandboxError("STORE_UNAVAILABLE", "the store did not answer", { admitted });
