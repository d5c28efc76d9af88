import { decidePut } from "../instance-put.ts";
import { giveUpLease, grantLease, isStale, type LeaseState } from "../lease.ts";
import { toInstance, toLease } from "../rows.ts";
import { staleEpoch } from "../stale-epoch.ts";
import type { Demand, InstanceRow, Lease, LeaseRequest, Store } from "../store.ts";
import { MetAnother } from "./failure.ts";
import type { Query, Transactions } from "./transactions.ts";

type FleetOperations = Pick<
  Store,
  "acquireLease" | "releaseLease" | "putDemand" | "waitingCreates" | "putInstance" | "listInstances" | "deleteInstance"
>;

const SERVER_NOW_MS = "(extract(epoch FROM clock_timestamp()) * 1000)::bigint";

/** The lease, the demand and the instances. Time is the server's. */
export function createFleetOperations({ read, write }: Transactions): FleetOperations {
  return {
    acquireLease: (request, call) => write((query) => acquireLease(query, request), call),
    releaseLease: (lease, call) => write((query) => releaseLease(query, lease), call),
    putDemand: (demand, call) => write((query) => putDemand(query, demand), call),
    waitingCreates: (call) =>
      read(async (query) => {
        const [row] = await query(
          `SELECT coalesce(sum(waiting_creates), 0) AS total FROM demands WHERE expires_at_ms > ${SERVER_NOW_MS}`,
        );
        return Number(row?.["total"]);
      }, call),
    putInstance: (row, call) =>
      write(async (query) => {
        await checkFence(query, call.epoch);
        return await putInstance(query, row);
      }, call),
    listInstances: (call) =>
      read(async (query) => (await query("SELECT * FROM instances ORDER BY instance_id")).map(toInstance), call),
    deleteInstance: (instanceId, call) =>
      write(async (query) => {
        await checkFence(query, call.epoch);
        await query("DELETE FROM instances WHERE instance_id = $1", [instanceId]);
        await query("DELETE FROM sandboxes WHERE instance_id = $1", [instanceId]);
      }, call),
  };
}

const lockLease = async (query: Query): Promise<LeaseState> =>
  toLease((await query("SELECT * FROM lease FOR UPDATE"))[0]);

const keepLease = async (query: Query, state: LeaseState): Promise<void> => {
  const values = [state.epoch, state.holder ?? null, state.ttlMs, state.expiresAtMs];
  await query("UPDATE lease SET epoch = $1, holder = $2, ttl_ms = $3, expires_at_ms = $4", values);
};

async function acquireLease(query: Query, request: LeaseRequest): Promise<Lease | undefined> {
  const state = await lockLease(query);
  // Asked when the lock is there: the wait for it may have been long.
  const [now] = await query(`SELECT ${SERVER_NOW_MS} AS now_ms`);
  const granted = grantLease(state, request, Number(now?.["now_ms"]));
  if (granted === undefined) return undefined;
  await keepLease(query, granted);
  return { holder: request.holder, epoch: granted.epoch };
}

async function releaseLease(query: Query, lease: Lease): Promise<void> {
  await keepLease(query, giveUpLease(await lockLease(query), lease));
}

async function putDemand(query: Query, { holder, waitingCreates, ttlMs }: Demand): Promise<void> {
  await query(`DELETE FROM demands WHERE expires_at_ms <= ${SERVER_NOW_MS} AND holder <> $1`, [holder]);
  await query(
    `INSERT INTO demands (holder, waiting_creates, expires_at_ms) VALUES ($1, $2, ${SERVER_NOW_MS} + $3)
     ON CONFLICT (holder) DO UPDATE
       SET waiting_creates = excluded.waiting_creates, expires_at_ms = excluded.expires_at_ms`,
    [holder, waitingCreates, ttlMs],
  );
}

/** Holds off the next lease until the write under this one is committed. */
async function checkFence(query: Query, epoch: number | undefined): Promise<void> {
  if (epoch === undefined) return;
  const [row] = await query("SELECT * FROM lease FOR SHARE");
  if (isStale(epoch, toLease(row))) throw staleEpoch(epoch);
}

async function putInstance(query: Query, row: InstanceRow): Promise<"put" | "changed"> {
  const [stored] = await query("SELECT * FROM instances WHERE instance_id = $1 FOR UPDATE", [row.instanceId]);
  const next = decidePut(stored === undefined ? undefined : toInstance(stored), row);
  if (typeof next === "string") return next;
  const values = [
    next.instanceId,
    next.admission,
    JSON.stringify(next.labels),
    next.createdAtMs,
    next.image,
    next.drain === undefined ? null : JSON.stringify(next.drain),
    next.goal,
    next.hasAnswered ? "yes" : "no",
    next.version,
  ];
  const columns = "instance_id, admission, labels, created_at_ms, image, drain, goal, ever_answered, version";
  const placeholders = "$1, $2, $3, $4, $5, $6, $7, $8, $9";
  const [written] =
    stored === undefined
      ? await query(
          `INSERT INTO instances (${columns}) VALUES (${placeholders}) ON CONFLICT DO NOTHING RETURNING version`,
          values,
        )
      : await query(
          `UPDATE instances SET (${columns}) = (${placeholders}) WHERE instance_id = $1 RETURNING version`,
          values,
        );
  if (written === undefined) throw new MetAnother("the instance was put by somebody else at the same time");
  return "put";
}
