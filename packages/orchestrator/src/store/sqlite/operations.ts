// Runs inside the worker thread.
import type { DatabaseSync } from "node:sqlite";
import type {
  CreateBegin,
  CreateBegun,
  CreateFinish,
  IdempotencyBegin,
  IdempotencyFinish,
  IdempotencyRef,
  SandboxNameQuery,
  SandboxPlacing,
  SandboxQuery,
  SandboxWithdrawal,
} from "../store.ts";
import { createFleetOperations } from "./fleet-operations.ts";
import { Keys } from "./keys.ts";
import { Sandboxes } from "./sandboxes.ts";

/** The store's operations in SQL. Each is run as one transaction by its caller. `retentionMs` is how long an idempotency key is kept. */
export function createOperations(database: DatabaseSync, retentionMs: number) {
  const keys = new Keys(database, retentionMs);
  const sandboxes = new Sandboxes(database);
  const tables = { keys, sandboxes };
  return {
    ...createFleetOperations(database),
    beginCreate: (begin: CreateBegin) => beginCreate(tables, begin),
    placeSandbox: (placed: SandboxPlacing) => sandboxes.placeSandbox(placed),
    finishCreate: (finish: CreateFinish) => finishCreate(tables, finish),
    withdrawSandbox: (withdrawn: SandboxWithdrawal) => withdraw(tables, withdrawn),
    getSandbox: (sessionId: string) => sandboxes.get(sessionId),
    findSandboxes: (query: SandboxNameQuery) => sandboxes.find(query),
    getSandboxes: (sessionIds: readonly string[]) => sandboxes.getAll(sessionIds),
    listSandboxes: (query: SandboxQuery) => sandboxes.list(query),
    deleteSandbox: (sessionId: string) => {
      sandboxes.delete(sessionId);
    },
    beginIdempotent: (begin: IdempotencyBegin) => keys.begin(begin),
    finishIdempotent: (finish: IdempotencyFinish, result: string) => keys.finish(finish, result),
    abandonIdempotent: (ref: IdempotencyRef) => {
      keys.drop(ref);
    },
    expireIdempotent: (nowMs: number) => keys.expire(nowMs),
  };
}

export type StoreOperations = ReturnType<typeof createOperations>;

interface Tables {
  readonly keys: Keys;
  readonly sandboxes: Sandboxes;
}

function beginCreate({ keys, sandboxes }: Tables, { row, key }: CreateBegin): CreateBegun {
  const state = key === undefined ? undefined : keys.begin({ ...key, plan: row.sessionId });
  if (state?.kind === "done" || state?.kind === "conflict") return state;
  const planned = state?.kind === "pending" ? { ...row, sessionId: state.plan, instanceId: undefined } : row;
  const reserved = sandboxes.reserve(planned);
  if ("by" in reserved) {
    if (key !== undefined) keys.dropPlanned({ ...key, plan: planned.sessionId });
    return { kind: "name_taken", by: reserved.by };
  }
  return state?.kind === "pending" ? { kind: "resumed", row: reserved.row } : { kind: "reserved" };
}

function finishCreate({ keys, sandboxes }: Tables, finish: CreateFinish): "finished" | "changed" {
  const { sessionId, instanceId, key, result } = finish;
  if (sandboxes.get(sessionId)?.instanceId !== instanceId) return "changed";
  if (key !== undefined && keys.finish({ ...key, plan: sessionId }, result) === "changed") return "changed";
  sandboxes.markCreated(sessionId);
  return "finished";
}

function withdraw({ keys, sandboxes }: Tables, withdrawn: SandboxWithdrawal): "withdrawn" | "changed" {
  const { sessionId, from, key } = withdrawn;
  const row = sandboxes.get(sessionId);
  if (row !== undefined && row.instanceId !== from) return "changed";
  sandboxes.delete(sessionId);
  if (key !== undefined) keys.dropPlanned({ ...key, plan: sessionId });
  return "withdrawn";
}
