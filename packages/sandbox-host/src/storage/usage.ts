import type { HeadRef, StorageCall } from "./model.ts";

/** What sessions take. Backends account for what was written last some seconds later. */
export interface Usage {
  /** Bytes the session's heads and snapshots take in the pool, its origin's own not included. */
  usedBytes(token: string, call: StorageCall): Promise<number>;
  /** Bytes that a head refers to, its origin's included. */
  headBytes(head: HeadRef, call: StorageCall): Promise<number>;
  /** The result of `usedBytes` for all sessions at once, by token. */
  usedBytesOfAll(call: StorageCall): Promise<ReadonlyMap<string, number>>;
}
