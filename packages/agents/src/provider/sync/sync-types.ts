/** Into the runtime, or back. */
export type SyncDirection = "to_runtime" | "from_runtime";

/** Why a sync runs: before the agent is launched, at a turn's boundary, at a normal stop, or after a crash. */
export type SyncReason = "start" | "turn" | "stop" | "crash";

/** Why files are brought over, and which are not. */
export interface SyncOptions {
  readonly reason: SyncReason;
  /** Added to the built-in ones. */
  readonly excludePatterns?: readonly string[];
  readonly signal?: AbortSignal;
}

/** What one sync moved, and what it could not or would not. */
export interface SyncResult {
  readonly files: number;
  readonly bytes: number;
  /** One sentence for each entry that was left out. */
  readonly errors: readonly string[];
}

export const NOTHING_SYNCED: SyncResult = { files: 0, bytes: 0, errors: [] };
