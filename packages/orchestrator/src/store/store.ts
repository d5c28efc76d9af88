/** Options every operation of the port takes. */
export interface StoreCall {
  readonly signal: AbortSignal;
}

/** What is remembered about an instance; what it holds and how it does is asked of it. */
export interface InstanceRow {
  readonly instanceId: string;
  readonly admission: "open" | "cordoned";
  readonly labels: Readonly<Record<string, string>>;
  readonly createdAtMs: number;
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

/** A key belongs to a tenant and a method. */
export interface IdempotencyRef {
  readonly tenant: string;
  readonly method: string;
  readonly key: string;
}

export interface IdempotencyBegin extends IdempotencyRef {
  /** Of everything in the request but the key. */
  readonly payloadHash: string;
  /** What the work needs to be taken up again by somebody else after a crash. */
  readonly plan: string;
  readonly nowMs: number;
}

/**
 * - `begun`: the key is new; the plan is on record and the work is the caller's.
 * - `pending`: somebody began under this key and did not finish; the plan is theirs.
 * - `done`: the answer of the first time.
 * - `conflict`: the key was used with another payload.
 */
export type IdempotencyState =
  | { readonly kind: "begun" }
  | { readonly kind: "pending"; readonly plan: string }
  | { readonly kind: "done"; readonly result: string }
  | { readonly kind: "conflict" };

export type Reservation =
  | { readonly kind: "reserved" }
  /** The name is taken by another sandbox of the tenant. */
  | { readonly kind: "name_taken"; readonly by: SandboxRow };

/** Page of an ordered list: rows whose session id comes after `after`, at most `limit`. */
export interface SandboxQuery {
  readonly tenant: string;
  readonly instanceId?: string;
  readonly after: string;
  readonly limit: number;
}

/** How long an idempotency key is kept. */
export const IDEMPOTENCY_RETENTION_MS = 24 * 60 * 60 * 1000;

/**
 * The fleet's index. Hosts' session lists are the truth about sandboxes; the store knows names, keys and what was begun.
 *
 * Every operation is one transaction that is durable when it answers. Each may be repeated: done twice is done once.
 */
export interface Store extends AsyncDisposable {
  putInstance(row: InstanceRow, call: StoreCall): Promise<void>;
  listInstances(call: StoreCall): Promise<readonly InstanceRow[]>;
  deleteInstance(instanceId: string, call: StoreCall): Promise<void>;

  /** Puts the sandbox into the index and takes its name. A row of the same session id is left as it is. */
  reserveSandbox(row: SandboxRow, call: StoreCall): Promise<Reservation>;
  /** Says which host is being asked, or has it. A sandbox that is not in the index stays out. */
  placeSandbox(
    placed: { readonly sessionId: string; readonly instanceId: string; readonly phase: SandboxRow["phase"] },
    call: StoreCall,
  ): Promise<void>;
  getSandbox(sessionId: string, call: StoreCall): Promise<SandboxRow | undefined>;
  /** Those of the ids that are in the index, in no order. */
  getSandboxes(sessionIds: readonly string[], call: StoreCall): Promise<readonly SandboxRow[]>;
  /** Ordered by session id. */
  listSandboxes(query: SandboxQuery, call: StoreCall): Promise<readonly SandboxRow[]>;
  /** Takes the sandbox out of the index and frees its name. */
  deleteSandbox(sessionId: string, call: StoreCall): Promise<void>;

  /** Keys older than the retention count as never used. */
  beginIdempotent(begin: IdempotencyBegin, call: StoreCall): Promise<IdempotencyState>;
  finishIdempotent(ref: IdempotencyRef, result: string, call: StoreCall): Promise<void>;
  /** Nothing came of it: the key is free again. A finished key stays. */
  abandonIdempotent(ref: IdempotencyRef, call: StoreCall): Promise<void>;
  /** Drops keys that are older than the retention; answers how many. */
  expireIdempotent(nowMs: number, call: StoreCall): Promise<number>;
}
