import { type Clock, hasErrno, isLiving, type ProcessIdentity, SandboxError } from "@turnbox/core";

const POLL_MS = 100;

export interface EndOptions {
  /** Of the monotonic clock. */
  readonly deadlineMs: number;
  readonly clock: Clock;
  readonly signal: AbortSignal;
}

/** Asks a process to end, once, and waits until it has. Another process under the same pid is never signalled. */
export async function endProcess(identity: ProcessIdentity, { deadlineMs, clock, signal }: EndOptions): Promise<void> {
  const pid = String(identity.pid);
  if (!isLiving(identity)) return;
  try {
    process.kill(identity.pid, "SIGTERM");
  } catch (cause) {
    if (hasErrno(cause, "ESRCH")) return;
    throw new SandboxError("PERMISSION_DENIED", `process ${pid} belongs to another user`, { cause });
  }
  while (isLiving(identity)) {
    if (clock.monotonicMs() > deadlineMs) {
      throw new SandboxError("DEADLINE_EXCEEDED", `process ${pid} was asked to end and has not done so in time`, {
        metadata: { pid },
      });
    }
    await clock.sleep(POLL_MS, { signal });
  }
}
