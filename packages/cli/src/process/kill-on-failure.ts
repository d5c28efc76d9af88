import type { SandboxProcess, Signal } from "@turnbox/client";

const KILL_MS = 5000;

/** Runs `work`; if it does not come to its end, the process does not go on without an owner. */
export async function killOnFailure<T>(process: SandboxProcess, signal: Signal, work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (thrown) {
    // Cleanup has its own deadline, and the first failure is the one that is reported.
    await process.kill(signal, { timeoutMs: KILL_MS }).catch(() => undefined);
    throw thrown;
  }
}
