import type { StoreOperations } from "./operations.ts";

/** What the worker is started with. */
export interface WorkerSettings {
  readonly path: string;
  readonly retentionMs: number;
}

/** One operation to run in the worker. */
export interface WorkerRequest {
  readonly id: number;
  readonly operation: keyof StoreOperations | "close";
  readonly args: readonly unknown[];
}

/** The first message of a worker says whether the file can be used; each further one answers a request. */
export type WorkerMessage =
  | { readonly kind: "opened" }
  | { readonly kind: "refused"; readonly refusal: "future" | "torn" | "foreign" | "failed"; readonly message: string }
  | { readonly kind: "answer"; readonly id: number; readonly result: unknown }
  | { readonly kind: "failure"; readonly id: number; readonly message: string };
