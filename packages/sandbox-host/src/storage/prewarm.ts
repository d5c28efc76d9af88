import type { HeadRef, Marks, StorageCall } from "./model.ts";

/**
 * The optional second interface of a storage: it serves speed alone. Whatever is done with it can be done without it, by
 * `Storage`, with the same result.
 */
export interface Prewarm {
  /**
   * Begins a seal before its name and marks are known: writes out what the sandbox has written so far and looks for room.
   * What fails here is thrown by `take`. One that is never taken leaves nothing.
   */
  prepareSeal(head: HeadRef, call: StorageCall): PreparedSeal;
}

export interface PreparedSeal {
  /** Does the rest of `Storage.seal` once the preparation is done. What is written meanwhile may be in the snapshot. */
  take(name: string, marks: Marks, call: StorageCall): Promise<void>;
}
