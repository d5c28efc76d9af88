import type { Call, CommandRunner, Log } from "@turnbox/core";
import { readMembarrier } from "../system/read-membarrier.ts";

/** Logs if this host was started in a way that makes each start of runsc slower than necessary. */
export async function logMembarrier(
  { runner, log }: { readonly runner: CommandRunner; readonly log: Log },
  call: Call,
): Promise<void> {
  const membarrier = await readMembarrier(runner, call);
  if (membarrier === "masked") log.debug("runsc starts without membarrier");
  else log.info({ membarrier }, "runsc starts slower than it could: membarrier is not masked, see docs/OPERATIONS.md");
}
