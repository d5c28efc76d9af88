import { SandboxError } from "@turnbox/core";

/** A process that waits for a hung filesystem takes longer than this; the caller gets an error then, and does not wait on. */
const STOP_LIMIT_MS = 15_000;

/** Does the work that ends a container, for as long as its caller lives and never for longer than the limit. */
export async function withinStopLimit(
  id: string,
  caller: AbortSignal | undefined,
  work: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const limit = AbortSignal.timeout(STOP_LIMIT_MS);
  try {
    await work(caller === undefined ? limit : AbortSignal.any([caller, limit]));
  } catch (cause) {
    caller?.throwIfAborted();
    if (!limit.aborted) throw cause;
    throw cannotBeEnded(id, cause);
  }
}

export function cannotBeEnded(id: string, cause?: unknown): SandboxError {
  return new SandboxError("RUNTIME_UNAVAILABLE", `container ${id} cannot be ended`, { admitted: "unknown", cause });
}
