import { SandboxError } from "@turnbox/client";
import type { SyncResult } from "./sync-types.ts";

/** What one sync may bring over. */
export interface SyncLimits {
  readonly maxEntries?: number;
  readonly maxBytes?: number;
}

/** What one sync may bring over unless another limit is given. */
export const DEFAULT_SYNC_LIMITS: Required<SyncLimits> = { maxEntries: 500_000, maxBytes: 16 * 1024 ** 3 };
/** More would fill a log and be of no use. */
const MAX_ERRORS = 100;

/** Counts a sync, and ends it if it goes beyond its limits. */
export interface SyncCounter {
  /** Counts an entry of the archive with the size that it says it has, before any of it is written. */
  claim(bytes: number): void;
  /** A file or link has arrived. */
  add(bytes: number): void;
  /** An entry was left out. */
  refuse(why: string): void;
  result(): SyncResult;
}

/** Counts from nothing, up to the limits. */
export function createSyncCounter({ maxEntries, maxBytes }: SyncLimits = {}): SyncCounter {
  const most = {
    entries: maxEntries ?? DEFAULT_SYNC_LIMITS.maxEntries,
    bytes: maxBytes ?? DEFAULT_SYNC_LIMITS.maxBytes,
  };
  const claimed = { entries: 0, bytes: 0 };
  const errors: string[] = [];
  let refused = 0;
  let files = 0;
  let bytes = 0;
  return {
    claim: (size) => {
      claimed.entries += 1;
      claimed.bytes += size;
      if (claimed.entries > most.entries) throw tooMuch(`more than ${most.entries} entries`);
      if (claimed.bytes > most.bytes) throw tooMuch(`more than ${most.bytes} bytes`);
    },
    add: (size) => {
      files += 1;
      bytes += size;
    },
    refuse: (why) => {
      refused += 1;
      if (refused <= MAX_ERRORS) errors.push(why);
    },
    result: () => ({
      files,
      bytes,
      errors: refused <= MAX_ERRORS ? errors : [...errors, `${refused - MAX_ERRORS} more were left out`],
    }),
  };
}

const tooMuch = (what: string): SandboxError =>
  new SandboxError("QUOTA_EXCEEDED", `the sync was ended: it has ${what}`);
