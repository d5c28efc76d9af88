import { randomToken } from "@turnbox/client/internal";
import type { PersistenceMode, ProviderCall, RuntimeState, SessionState } from "../provider.ts";
import { type Acquired, isGone } from "./acquire-sandbox.ts";

const NAME_CHARS = 8;

/** Ends a sandbox's use as the persistence says, and tells what it is then. */
export async function retireSandbox(
  { sandbox, info }: Acquired,
  {
    persistence,
    state,
    ...call
  }: ProviderCall & { readonly persistence: PersistenceMode; readonly state: SessionState },
): Promise<RuntimeState> {
  if (persistence === "reuse") return "stopped";
  if (persistence === "archive") return await archive({ sandbox, info }, state, call);
  try {
    await sandbox.destroy(call);
  } catch (thrown) {
    if (!isGone(thrown)) throw thrown;
  }
  return "destroyed";
}

/**
 * Turnbox has no cold storage: an archived sandbox is paused, so that it takes no memory, and has a snapshot with a name,
 * from which its files can be restored also when its head is lost. On a host that can do neither it is left as it is.
 */
async function archive({ sandbox, info }: Acquired, state: SessionState, call: ProviderCall): Promise<RuntimeState> {
  const { pause, snapshots } = info.capabilities;
  if (state.state === "archived" && info.state === "paused") return "archived";
  if (pause) await sandbox.pause(call);
  if (snapshots) await sandbox.snapshot(`archive-${randomToken(NAME_CHARS)}`, call);
  return pause || snapshots ? "archived" : "stopped";
}
