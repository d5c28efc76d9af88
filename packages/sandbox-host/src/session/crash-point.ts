import { readFile } from "node:fs/promises";

/**
 * The points in multi-step operations at which a crash makes a difference. Tests end the service at each of them; a point
 * that is not named here cannot be reached, and a test fails for one that is named and not reached.
 */
export const CRASH_POINTS = [
  "create.recorded",
  "create.files_made",
  "create.committed",
  "handover.claimed",
  "handover.bound",
  "handover.committed",
  "seal.begun",
  "seal.sealed",
  "seal.committed",
  "drop.begun",
  "drop.destroyed",
  "drop.committed",
  "rollback.begun",
  "rollback.frozen",
  "rollback.sealed",
  "rollback.cloned",
  "rollback.booted",
  "rollback.committed",
  "rollback.retired",
  "fork.snapshot_taken",
  "fork.children_made",
  "fork.committed",
  "pause.closed",
  "pause.frozen",
  "pause.committed",
  "resume.committed",
  "resume.thawed",
  "destroy.tombstoned",
  "destroy.container_ended",
  "destroy.files_destroyed",
  "destroy.shrunk",
  "destroy.forgotten",
] as const;

export type CrashPoint = (typeof CRASH_POINTS)[number];

/** Called when an operation gets to a point. It does nothing in service. */
export type CrashPointHook = (point: CrashPoint) => Promise<void>;

export const PASS_ON: CrashPointHook = () => Promise.resolve();

/** Ends this process at the point that a file names, as `kill -9` does; for tests of what a crash leaves. */
export function createCrashOnRequest(path: string): CrashPointHook {
  return async (point) => {
    const wanted = await readFile(path, "utf8").catch(() => "");
    if (wanted.trim() !== point) return;
    process.kill(process.pid, "SIGKILL");
    await new Promise(() => undefined);
  };
}
