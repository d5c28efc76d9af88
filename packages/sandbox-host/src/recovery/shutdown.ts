import type { Logger } from "pino";
import type { Runtime } from "../runtime/runtime.ts";
import type { Registry } from "../session/registry.ts";

/** A stop that takes longer than this goes on without the rest; what runs on is found again at the next start. */
const FREEZE_TIMEOUT_MS = 3_000;

/**
 * Freezes the containers of all sessions. Nothing is destroyed and no state changes: the freeze belongs to the stop, not
 * to the session, and the first call after the next start thaws. Returns whether anything runs on.
 */
export async function freezeSessions(deps: {
  readonly registry: Registry;
  readonly runtime: Runtime;
  readonly log: Logger;
}): Promise<"all_frozen" | "some_run"> {
  const call = { signal: AbortSignal.timeout(FREEZE_TIMEOUT_MS) };
  let frozen: "all_frozen" | "some_run" = "all_frozen";
  const freezing = deps.registry.all().map(async ({ row }) => {
    if (row.container === null || row.phase.kind === "destroying") return;
    try {
      if ((await deps.runtime.liveness(row.container, call)) === "running")
        await deps.runtime.pause(row.container, call);
    } catch (thrown) {
      frozen = "some_run";
      deps.log.warn({ err: thrown, sessionId: row.id }, "sandbox not frozen, it runs while the service is down");
    }
  });
  await Promise.all(freezing);
  return frozen;
}
