import { type Clock, SandboxError } from "@turnbox/client";
import { createDeadline } from "@turnbox/client/internal";
import type { Handle } from "../launch/launcher.ts";
import type { Acp } from "./acp.ts";
import { fromRequestError } from "./request-error.ts";

/** How much of an agent's last words goes into a message. */
const LAST_WORDS_CHARS = 2000;
/** How long the end of an agent whose output has ended is waited for. */
const END_MS = 1000;

/** Why a request to an agent failed: it refused, the caller gave up, or it is gone. */
export async function agentFailure(
  thrown: unknown,
  deps: { readonly acp: Acp; readonly handle: Handle; readonly clock: Clock; readonly signal: AbortSignal | undefined },
): Promise<SandboxError> {
  const { acp, handle, clock, signal } = deps;
  if (thrown instanceof SandboxError) return thrown;
  if (signal?.aborted === true) return SandboxError.from(signal.reason);
  const refusal = fromRequestError(acp, thrown);
  if (refusal !== undefined) return refusal;
  using deadline = createDeadline({ clock, ms: END_MS });
  const how = await handle.wait({ signal: deadline.signal }).then(
    ({ exitCode, signal: name, reason }) => `ended (${name ?? reason ?? `exit code ${exitCode ?? "unknown"}`})`,
    () => "closed its output",
  );
  const words = (await handle.stderr().catch(() => "")).trim().slice(-LAST_WORDS_CHARS);
  const message = `the agent ${how} before its answer${words === "" ? "" : `: ${words}`}`;
  return new SandboxError("OUTCOME_UNKNOWN", message, { cause: thrown });
}
