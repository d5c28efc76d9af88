import { extname } from "node:path";
import { type Clock, SandboxError, systemClock } from "@turnbox/core";
import { DatabaseThread } from "@turnbox/core/sqlite";
import { staleEpoch } from "../stale-epoch.ts";
import { type FencedCall, IDEMPOTENCY_RETENTION_MS, type Store, type StoreCall } from "../store.ts";
import { LATER_STORE } from "./database.ts";
import type { StoreOperations } from "./operations.ts";

export interface SqliteStoreOptions extends StoreCall {
  /** Tells the time of the lease and of the demand. */
  readonly clock?: Clock;
}

/**
 * Opens the store in a file, made if it is missing. SQL runs in one worker thread only, and each call is one
 * transaction. A file of a newer version is
 * `HOME_VERSION_UNSUPPORTED`; a damaged or foreign one is `STORAGE_UNAVAILABLE`; both are left as they are.
 */
export async function openSqliteStore(path: string, options: SqliteStoreOptions): Promise<Store> {
  const { signal, clock = systemClock } = options;
  signal.throwIfAborted();
  const thread = await startThread(path);
  const ask = async <T>(operation: keyof StoreOperations, args: readonly unknown[], signal?: AbortSignal) => {
    signal?.throwIfAborted();
    return (await thread.call(operation, args)) as T;
  };

  const fenced = async <T>(operation: "putInstance" | "deleteInstance", subject: unknown, call: FencedCall) => {
    const answer = await ask<T | "stale">(operation, [subject, call.epoch], call.signal);
    if (answer === "stale") throw staleEpoch(call.epoch);
    return answer;
  };

  return {
    acquireLease: (request, { signal }) => ask("acquireLease", [request, clock.nowMs()], signal),
    releaseLease: (lease, { signal }) => ask("releaseLease", [lease], signal),
    putDemand: (demand, { signal }) => ask("putDemand", [demand, clock.nowMs()], signal),
    waitingCreates: ({ signal }) => ask("waitingCreates", [clock.nowMs()], signal),
    putInstance: (row, call) => fenced<"put" | "changed">("putInstance", row, call),
    listInstances: ({ signal }) => ask("listInstances", [], signal),
    deleteInstance: async (instanceId, call) => {
      await fenced<"deleted">("deleteInstance", instanceId, call);
    },
    beginCreate: (begin, { signal }) => ask("beginCreate", [begin], signal),
    placeSandbox: (placed, { signal }) => ask("placeSandbox", [placed], signal),
    finishCreate: (finish, { signal }) => ask("finishCreate", [finish], signal),
    withdrawSandbox: (withdrawn, { signal }) => ask("withdrawSandbox", [withdrawn], signal),
    getSandbox: (sessionId, { signal }) => ask("getSandbox", [sessionId], signal),
    findSandboxes: (query, { signal }) => ask("findSandboxes", [query], signal),
    getSandboxes: (sessionIds, { signal }) => ask("getSandboxes", [sessionIds], signal),
    listSandboxes: (query, { signal }) => ask("listSandboxes", [query], signal),
    deleteSandbox: (sessionId, { signal }) => ask("deleteSandbox", [sessionId], signal),
    beginIdempotent: (begin, { signal }) => ask("beginIdempotent", [begin], signal),
    finishIdempotent: (ref, result, { signal }) => ask("finishIdempotent", [ref, result], signal),
    abandonIdempotent: (ref, { signal }) => ask("abandonIdempotent", [ref], signal),
    expireIdempotent: (nowMs, { signal }) => ask("expireIdempotent", [nowMs], signal),
    [Symbol.asyncDispose]: () => thread[Symbol.asyncDispose](),
  };
}

/** Starts the worker beside this file (`.ts` from source, `.js` when built) and waits until it has opened the file. */
async function startThread(path: string): Promise<DatabaseThread> {
  return await DatabaseThread.open({
    worker: new URL(`./worker${extname(import.meta.url)}`, import.meta.url),
    data: { path, retentionMs: IDEMPOTENCY_RETENTION_MS },
    errors: {
      refused: ({ name, message }) => {
        const reason = name === LATER_STORE ? "HOME_VERSION_UNSUPPORTED" : "STORAGE_UNAVAILABLE";
        return new SandboxError(reason, `the fleet's store ${path} cannot be used: ${message}`);
      },
      failed: ({ message }) => new SandboxError("INTERNAL", `the store failed: ${message}`),
      lost: (cause) => new SandboxError("INTERNAL", "the store's thread failed", { cause }),
      closed: () => new SandboxError("SHUTTING_DOWN", "the store is closed"),
    },
  });
}
