import type { Readable } from "node:stream";
import type { Clock } from "../async/clock.ts";

export interface ParentWatchOptions {
  readonly clock: Clock;
  readonly intervalMs: number;
  readonly signal: AbortSignal;
  /** The parent to watch; the present one unless given. Give it where the parent may have died before the first look. */
  readonly parentPid?: number;
  /** A pipe whose other end the parent holds: its end is the parent's end. It is read and thrown away. */
  readonly stdin?: Readable;
  /** The parent of this process now. */
  readonly currentParentPid?: () => number;
}

/**
 * Resolves when the parent process has died: this process was given another parent, or the pipe from it ended. Rejects
 * with the signal's reason when the watch is no longer wanted.
 */
export async function parentDeath(options: ParentWatchOptions): Promise<void> {
  const { clock, intervalMs, signal, stdin } = options;
  const currentParentPid = options.currentParentPid ?? (() => process.ppid);
  const parentPid = options.parentPid ?? currentParentPid();
  signal.throwIfAborted();
  const ended = new AbortController();
  const onEnd = (): void => {
    ended.abort();
  };
  for (const event of ["end", "close", "error"]) stdin?.once(event, onEnd);
  stdin?.resume();
  try {
    while (currentParentPid() === parentPid && !ended.signal.aborted) {
      await clock.sleep(intervalMs, { signal: AbortSignal.any([signal, ended.signal]) });
    }
  } catch (cause) {
    if (!ended.signal.aborted) throw cause;
  } finally {
    for (const event of ["end", "close", "error"]) stdin?.off(event, onEnd);
  }
}
