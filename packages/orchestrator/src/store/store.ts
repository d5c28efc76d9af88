/** Options every operation of the port takes. */
export interface StoreCall {
  readonly signal: AbortSignal;
}

export type DrainReason = "health" | "scale_down" | "operator" | "refresh" | "interruption";

/** The emptying of an instance: why, since when, until when sandboxes may go on, and what becomes of those left then. */
export interface DrainPlan {
  readonly reason: DrainReason;
  readonly sinceMs: number;
  readonly deadlineMs: number;
  readonly sessions: "keep" | "discard";
}

/** What is remembered about an instance; what it holds and how it does is asked of it. */
export interface InstanceRow {
  readonly instanceId: string;
  readonly admission: "open" | "cordoned";
  readonly labels: Readonly<Record<string, string>>;
  readonly createdAtMs: number;
  /** What it was launched from; empty if its maker knows no images. */
  readonly image: string;
  readonly drain: DrainPlan | undefined;
  /** What the fleet wants of its machine. `stopped` holds until first use, `terminated` is final. */
  readonly goal: "running" | "stopped" | "terminated";
  /** Whether its host has answered at any time: one that has may hold sandboxes, however silent it is now. */
  readonly hasAnswered: boolean;
  /** 0 in a row that was never put; each put raises it. */
  readonly version: number;
}

/** The right to run the control loop. The epoch is higher than that of every lease before it, and hosts remember it. */
export interface Lease {
  readonly holder: string;
  readonly epoch: number;
}

export interface LeaseRequest {
  /** Names the asking process; one that asks again while it holds the lease renews it and keeps its epoch. */
  readonly holder: string;
  readonly ttlMs: number;
}

/** A write by the holder of a lease is refused as `EPOCH_STALE` if a later lease has been given. */
export interface FencedCall extends StoreCall {
  /** Absent in what an operator asks for, through whichever replica. */
  readonly epoch?: number;
}

/** How many creates wait for room in one replica; it holds for `ttlMs` and is renewed while they wait. */
export interface Demand {
  readonly holder: string;
  readonly waitingCreates: number;
  readonly ttlMs: number;
}

/**
 * One sandbox in the index. `creating` is written before its host is asked, so that a create that was cut off is found
 * again; `instanceId` is then the host that may have it.
 */
export interface SandboxRow {
  readonly sessionId: string;
  readonly tenant: string;
  readonly name: string | undefined;
  readonly labels: Readonly<Record<string, string>>;
  readonly instanceId: string | undefined;
  readonly phase: "creating" | "created";
  readonly createdAtMs: number;
}

export interface CreateBegin {
  /** What goes into the index if the key is new. Its session id is the plan of the key; it may name the first instance. */
  readonly row: SandboxRow;
  /** Absent if the create has none. */
  readonly key?: Omit<IdempotencyBegin, "plan">;
}

/**
 * - `reserved`: the key and the row are on record and the work is the caller's.
 * - `resumed`: another call began under this key and did not finish; the row is the one it reserved.
 * - `name_taken`: another sandbox of the tenant has the name; neither the key nor a row is on record.
 * - `done`, `conflict`: as in `IdempotencyState`.
 */
export type CreateBegun =
  | { readonly kind: "reserved" }
  | { readonly kind: "resumed"; readonly row: SandboxRow }
  | { readonly kind: "name_taken"; readonly by: SandboxRow }
  | { readonly kind: "done"; readonly result: string }
  | { readonly kind: "conflict" };

export interface SandboxPlacing {
  readonly sessionId: string;
  readonly instanceId: string;
  /** The instance that the row named when the caller last saw or wrote it. */
  readonly from: string | undefined;
}

export interface CreateFinish {
  readonly sessionId: string;
  /** The instance that has it. */
  readonly instanceId: string;
  /** Absent if the create has none. */
  readonly key?: IdempotencyRef;
  /** What later calls under the same key return. */
  readonly result: string;
}

export interface SandboxWithdrawal {
  readonly sessionId: string;
  readonly from: string | undefined;
  /** Absent if the create has none. */
  readonly key?: IdempotencyRef;
}

/** A key belongs to a tenant and a method. */
export interface IdempotencyRef {
  readonly tenant: string;
  readonly method: string;
  readonly key: string;
}

/** A key and the plan that was carried out under it. */
export interface IdempotencyFinish extends IdempotencyRef {
  readonly plan: string;
}

export interface IdempotencyBegin extends IdempotencyRef {
  /** Of everything in the request but the key. */
  readonly payloadHash: string;
  /** What the work needs to be taken up again by another call after a crash. */
  readonly plan: string;
  readonly nowMs: number;
}

/**
 * - `begun`: the key is new; the plan is on record and the work is the caller's.
 * - `pending`: another call began under this key and did not finish; the plan is that call's.
 * - `done`: the answer of the first time.
 * - `conflict`: the key was used with another payload.
 */
export type IdempotencyState =
  | { readonly kind: "begun" }
  | { readonly kind: "pending"; readonly plan: string }
  | { readonly kind: "done"; readonly result: string }
  | { readonly kind: "conflict" };

/** Page of an ordered list: rows whose session id comes after `after`, at most `limit`. */
export interface SandboxQuery {
  readonly tenant: string;
  readonly instanceId?: string;
  readonly after: string;
  readonly limit: number;
}

/** What people call a sandbox by. */
export interface SandboxNameQuery {
  readonly tenant: string;
  /** A name or a session id. */
  readonly name: string;
}

/** How long an idempotency key is kept. */
export const IDEMPOTENCY_RETENTION_MS = 24 * 60 * 60 * 1000;

/**
 * What a fleet has to remember: which sandbox is on which instance, under which name and key, what it wants of each
 * instance, and which replica leads. Hosts' own lists are the truth about sandboxes; what is here is the index to them.
 *
 * # Words
 *
 * - A _replica_ is one orchestrator process; several may share a store.
 * - A _row_ is what is known about one sandbox or one instance. The row of a sandbox is `creating` until a host has made it.
 * - A _key_ is the idempotency key of a request. It belongs to a tenant and a method, and is kept for 24 hours.
 * - A _plan_ is stored with a key when its work begins, so that another call can go on with the same work.
 * - The _lease_ is the right to run the control loop; its _epoch_ is a number that grows with each lease and fences writes.
 * - To _withdraw_ a create is to take its row and its key back.
 *
 * # Life cycle
 *
 * A create is `beginCreate`, then the call of the host, then `finishCreate`: two round trips. `placeSandbox` is a third one,
 * if no slot was free at the beginning or the host refused. `withdrawSandbox` ends a create that failed, `deleteSandbox` a
 * sandbox. An instance lives from its first `putInstance` to `deleteInstance`, which takes its sandboxes along.
 *
 * # Promises
 *
 * Every operation is one transaction. It is durable when it returns, except for `finishCreate`, which says so. Each may be
 * repeated: done twice it returns as if done once. A write under a lease is refused as `EPOCH_STALE` once a later lease was
 * given. Rows of instances have a version, and a write of an older version changes nothing. Time is that of the store: of
 * the database server, or of the one process that has the file.
 *
 * # Example: a create, the loss of its answer, and the same call again
 *
 *     const row = { sessionId: "s1", tenant: "t", name: "web", instanceId: "i-1", phase: "creating", ...rest };
 *     const ref = { tenant: "t", method: "CreateSandbox", key: "k1" };
 *     const key = { ...ref, payloadHash: "4f2a", nowMs };
 *     await store.beginCreate({ row, key }, call); // { kind: "reserved" }
 *     // ... the host i-1 makes s1, and the replica dies before it can say so ...
 *
 *     // Another replica gets the same request. It asks the host that the row names, which makes nothing new.
 *     await store.beginCreate({ row: { ...row, sessionId: "s2" }, key }, call); // { kind: "resumed", row: <s1 on i-1> }
 *     await store.finishCreate({ sessionId: "s1", instanceId: "i-1", key: ref, result }, call); // "finished"
 *
 *     // From now on the key has a result.
 *     await store.beginCreate({ row, key }, call); // { kind: "done", result }
 *
 * # Failures
 *
 * They are `SandboxError`s: `STORE_UNAVAILABLE` if the database does not answer within the adapter's patience,
 * `EPOCH_STALE`, `SHUTTING_DOWN` after disposal.
 */
export interface Store extends AsyncDisposable {
  /** Takes or renews the lease. Undefined while another holder has it. Time is that of the store, not of the caller. */
  acquireLease(request: LeaseRequest, call: StoreCall): Promise<Lease | undefined>;
  /** Gives the lease up, so that another may have it at once. One that is not held is left alone. */
  releaseLease(lease: Lease, call: StoreCall): Promise<void>;

  putDemand(demand: Demand, call: StoreCall): Promise<void>;
  /** Creates that wait for room, in all replicas. */
  waitingCreates(call: StoreCall): Promise<number>;

  /** Puts the row if the stored one still has its version: otherwise another writer has changed it, and nothing happens. */
  putInstance(row: InstanceRow, call: FencedCall): Promise<"put" | "changed">;
  listInstances(call: StoreCall): Promise<readonly InstanceRow[]>;
  /** The instance is gone, and with it the sandboxes that it held: they leave the index, and their names are free. */
  deleteInstance(instanceId: string, call: FencedCall): Promise<void>;

  /**
   * Begins a create: puts its key on record, and its sandbox into the index under its name. The row of a key that was
   * begun before is put back if it is missing, and names no instance then; a row of the same session id is left as it is.
   */
  beginCreate(begin: CreateBegin, call: StoreCall): Promise<CreateBegun>;
  /**
   * Says which host is asked next, if the row still names the instance that the caller knows of (or this one already).
   * Otherwise another replica has gone on with the same sandbox, or it is not in the index, and nothing changes.
   */
  placeSandbox(placed: SandboxPlacing, call: StoreCall): Promise<"placed" | "changed">;
  /**
   * The host has made it: the row is `created`, and the first result of the key is kept. `changed` if the row names
   * another instance or is gone, or the key is gone or was begun again under another plan: then nothing changes.
   *
   * The one operation that may be lost with its machine (not with its process): what is left is the create as it was
   * before, and a call under its key has the same host finish it again.
   */
  finishCreate(finish: CreateFinish, call: StoreCall): Promise<"finished" | "changed">;
  /**
   * Nothing came of a create: takes its row out if that still names the instance that the caller knows of, and frees
   * the key that it was planned under. If another replica has gone on with it, nothing changes.
   */
  withdrawSandbox(withdrawn: SandboxWithdrawal, call: StoreCall): Promise<"withdrawn" | "changed">;
  getSandbox(sessionId: string, call: StoreCall): Promise<SandboxRow | undefined>;
  /** The tenant's sandboxes that have this name or this session id: none, one, or two that share it. */
  findSandboxes(query: SandboxNameQuery, call: StoreCall): Promise<readonly SandboxRow[]>;
  /** Those of the ids that are in the index, in no order. */
  getSandboxes(sessionIds: readonly string[], call: StoreCall): Promise<readonly SandboxRow[]>;
  /** Ordered by session id. */
  listSandboxes(query: SandboxQuery, call: StoreCall): Promise<readonly SandboxRow[]>;
  /** Takes the sandbox out of the index and frees its name. */
  deleteSandbox(sessionId: string, call: StoreCall): Promise<void>;

  /** Keys older than the retention count as never used. */
  beginIdempotent(begin: IdempotencyBegin, call: StoreCall): Promise<IdempotencyState>;
  /** Keeps the first result of a key. `changed` if the key is not there or was begun again under another plan. */
  finishIdempotent(finish: IdempotencyFinish, result: string, call: StoreCall): Promise<"finished" | "changed">;
  /** Nothing came of it: the key is free again. A finished key stays. */
  abandonIdempotent(ref: IdempotencyRef, call: StoreCall): Promise<void>;
  /** Drops keys that are older than the retention; returns how many. */
  expireIdempotent(nowMs: number, call: StoreCall): Promise<number>;
}
