import type { Logger } from "pino";
import type { Records } from "../record/records.ts";
import type { Storage } from "../storage/storage.ts";

/** In which boot of the machine the service has stopped with everything on the disk. */
const CLEAN_STOP = "clean_stop";
const NONE = "";
/** A stop that takes longer than this is not a clean one, and goes on. */
const FLUSH_TIMEOUT_MS = 5_000;

/**
 * The boot in which an earlier service stopped cleanly; null if the last one did not. The mark is removed, because
 * files change from here on.
 */
export async function takeCleanStop(records: Records): Promise<string | null> {
  const bootId = await records.call("findFact", CLEAN_STOP);
  if (bootId === null || bootId === NONE) return null;
  await records.call("keepFact", { name: CLEAN_STOP, value: NONE });
  return bootId;
}

/**
 * Records that nothing is lost by a boot that comes next: nothing runs any more that writes, and what was written is on
 * the disk. If that fails, nothing is recorded, and the boot counts as a crash.
 */
export async function recordCleanStop(deps: {
  readonly records: Records;
  readonly storage: Storage;
  readonly log: Logger;
  readonly bootId: string;
}): Promise<void> {
  try {
    await deps.storage.flush({ signal: AbortSignal.timeout(FLUSH_TIMEOUT_MS) });
    await deps.records.call("keepFact", { name: CLEAN_STOP, value: deps.bootId });
  } catch (err) {
    deps.log.warn({ err }, "storage not flushed, a boot of the machine counts as a crash");
  }
}
