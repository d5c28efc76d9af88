import { type CommandRunner, readMembarrier } from "@turnbox/core";
import type { Logger } from "pino";

/** Says where this host was started in a way in which each start of runsc takes longer than it has to. */
export async function tellMembarrier(
  { runner, log }: { readonly runner: CommandRunner; readonly log: Logger },
  call: { readonly signal: AbortSignal },
): Promise<void> {
  const membarrier = await readMembarrier(runner, call);
  if (membarrier === "masked") log.debug("runsc starts without membarrier");
  else log.info({ membarrier }, "runsc starts slower than it could: membarrier is not masked, see docs/OPERATIONS.md");
}
