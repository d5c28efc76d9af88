import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import { type Clock, SandboxError, systemClock } from "@turnbox/core";
import { staleEpoch } from "../stale-epoch.ts";
import { type FencedCall, IDEMPOTENCY_RETENTION_MS, type Store, type StoreCall } from "../store.ts";
import type { WorkerMessage, WorkerRequest, WorkerSettings } from "./messages.ts";

interface Waiting {
  readonly resolve: (result: unknown) => void;
  readonly reject: (error: SandboxError) => void;
}

export interface SqliteStoreOptions extends StoreCall {
  /** Tells the time of the lease and of the demand. */
  readonly clock?: Clock;
}

/**
 * Opens the store in a file, made if it is missing. SQL runs in one worker thread only. A file of a newer version is
 * `HOME_VERSION_UNSUPPORTED`; a damaged or foreign one is `STORAGE_UNAVAILABLE`; both are left as they are.
 */
export async function openSqliteStore(path: string, options: SqliteStoreOptions): Promise<Store> {
  const { signal, clock = systemClock } = options;
  signal.throwIfAborted();
  const thread = await Thread.start(path);
  const ask = async <T>(operation: WorkerRequest["operation"], args: readonly unknown[], signal?: AbortSignal) => {
    signal?.throwIfAborted();
    return (await thread.ask(operation, args)) as T;
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
    [Symbol.asyncDispose]: () => thread.close(),
  };
}

/** The worker beside this file, which has the database open, and the requests that it has not answered. */
class Thread {
  readonly #path: string;
  readonly #worker: Worker;
  readonly #waiting = new Map<number, Waiting>();
  readonly #opened = Promise.withResolvers<void>();
  readonly #ended = Promise.withResolvers<void>();
  #nextId = 1;
  #dead: SandboxError | undefined;

  private constructor(path: string) {
    const workerData: WorkerSettings = { path, retentionMs: IDEMPOTENCY_RETENTION_MS };
    this.#path = path;
    // `.ts` from source, `.js` when built.
    this.#worker = new Worker(new URL(`./worker${extname(import.meta.url)}`, import.meta.url), { workerData });
    this.#worker.on("message", (message: WorkerMessage) => {
      this.#receive(message);
    });
    this.#worker.on("error", (cause) => {
      this.#fail(new SandboxError("INTERNAL", "the store's thread failed", { cause }));
    });
    this.#worker.on("exit", () => {
      this.#fail(new SandboxError("SHUTTING_DOWN", "the store is closed"));
      this.#ended.resolve();
    });
  }

  /** Starts the worker and waits until it has opened the file. */
  static async start(path: string): Promise<Thread> {
    const thread = new Thread(path);
    await thread.#opened.promise;
    return thread;
  }

  ask(operation: WorkerRequest["operation"], args: readonly unknown[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      if (this.#dead !== undefined) {
        reject(this.#dead);
        return;
      }
      const id = this.#nextId;
      this.#nextId += 1;
      this.#waiting.set(id, { resolve, reject });
      this.#worker.postMessage({ id, operation, args } satisfies WorkerRequest);
    });
  }

  async close(): Promise<void> {
    if (this.#dead === undefined) await this.ask("close", []);
    await this.#ended.promise;
  }

  #receive(message: WorkerMessage): void {
    switch (message.kind) {
      case "opened":
        this.#opened.resolve();
        break;
      case "refused":
        this.#fail(refusalOf(message, this.#path));
        break;
      case "answer":
        this.#take(message.id)?.resolve(message.result);
        break;
      case "failure":
        this.#take(message.id)?.reject(new SandboxError("INTERNAL", `the store failed: ${message.message}`));
        break;
    }
  }

  #take(id: number): Waiting | undefined {
    const one = this.#waiting.get(id);
    this.#waiting.delete(id);
    return one;
  }

  #fail(error: SandboxError): void {
    this.#dead ??= error;
    this.#opened.reject(error);
    for (const one of this.#waiting.values()) one.reject(error);
    this.#waiting.clear();
  }
}

function refusalOf(refused: Extract<WorkerMessage, { kind: "refused" }>, path: string): SandboxError {
  const reason = refused.refusal === "future" ? "HOME_VERSION_UNSUPPORTED" : "STORAGE_UNAVAILABLE";
  return new SandboxError(reason, `the fleet's store ${path} cannot be used: ${refused.message}`);
}
