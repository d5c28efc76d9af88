// Runs inside the worker thread.
import type { DatabaseSync } from "node:sqlite";
import { decidePut } from "../instance-put.ts";
import { giveUpLease, grantLease, isStale, type LeaseState } from "../lease.ts";
import type { Demand, InstanceRow, Lease, LeaseRequest } from "../store.ts";
import { toInstance, toLease } from "../rows.ts";

/** The lease, the demand and the instances. Time comes with each request; a fenced write may return `stale`. */
export function createFleetOperations(database: DatabaseSync) {
  const sql = (text: string) => database.prepare(text);
  const readLease = sql("SELECT * FROM lease");
  const writeLease = sql("UPDATE lease SET epoch = ?, holder = ?, ttl_ms = ?, expires_at_ms = ?");
  const putDemand = sql("INSERT OR REPLACE INTO demands (holder, waiting_creates, expires_at_ms) VALUES (?, ?, ?)");
  const expireDemands = sql("DELETE FROM demands WHERE expires_at_ms <= ?");
  const sumDemands = sql("SELECT total(waiting_creates) AS total FROM demands WHERE expires_at_ms > ?");
  const putInstance = sql(
    `INSERT OR REPLACE INTO instances
       (instance_id, admission, labels, created_at_ms, image, drain, goal, ever_answered, version)
     VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)`,
  );
  const instanceById = sql("SELECT * FROM instances WHERE instance_id = ?");
  const listInstances = sql("SELECT * FROM instances ORDER BY instance_id");
  const deleteInstance = sql("DELETE FROM instances WHERE instance_id = ?");
  const deleteItsSandboxes = sql("DELETE FROM sandboxes WHERE instance_id = ?");

  const lease = (): LeaseState => toLease(readLease.get());
  const keepLease = (state: LeaseState): void => {
    writeLease.run(state.epoch, state.holder ?? null, state.ttlMs, state.expiresAtMs);
  };
  const keepInstance = (row: InstanceRow): void => {
    putInstance.run(
      row.instanceId,
      row.admission,
      JSON.stringify(row.labels),
      row.createdAtMs,
      row.image,
      row.drain === undefined ? null : JSON.stringify(row.drain),
      row.goal,
      row.hasAnswered ? "yes" : "no",
      row.version,
    );
  };

  return {
    acquireLease: (request: LeaseRequest, nowMs: number): Lease | undefined => {
      const granted = grantLease(lease(), request, nowMs);
      if (granted === undefined) return undefined;
      keepLease(granted);
      return { holder: request.holder, epoch: granted.epoch };
    },
    releaseLease: (given: Lease): void => {
      keepLease(giveUpLease(lease(), given));
    },
    putDemand: (demand: Demand, nowMs: number): void => {
      expireDemands.run(nowMs);
      putDemand.run(demand.holder, demand.waitingCreates, nowMs + demand.ttlMs);
    },
    waitingCreates: (nowMs: number): number => Number(sumDemands.get(nowMs)?.["total"]),

    putInstance: (row: InstanceRow, epoch: number | undefined): "put" | "changed" | "stale" => {
      if (isStale(epoch, lease())) return "stale";
      const stored = instanceById.get(row.instanceId);
      const next = decidePut(stored === undefined ? undefined : toInstance(stored), row);
      if (typeof next === "string") return next;
      keepInstance(next);
      return "put";
    },
    listInstances: (): readonly InstanceRow[] => listInstances.all().map(toInstance),
    deleteInstance: (instanceId: string, epoch: number | undefined): "deleted" | "stale" => {
      if (isStale(epoch, lease())) return "stale";
      deleteInstance.run(instanceId);
      deleteItsSandboxes.run(instanceId);
      return "deleted";
    },
  };
}
