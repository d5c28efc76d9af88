import { type Clock, SandboxError } from "@turnbox/client";
import { createDeadline, raceSignal } from "@turnbox/client/internal";
import { STOP_GRACE_MS } from "./launcher.ts";

/** SIGTERM, and SIGKILL where the program is not gone after the grace. The caller's signal ends the waiting alone. */
export async function stopGently(
  program: { readonly done: Promise<void>; kill(signal: "SIGTERM" | "SIGKILL"): Promise<void> },
  { clock, signal }: { readonly clock: Clock; readonly signal?: AbortSignal | undefined },
): Promise<void> {
  const stopping = (async () => {
    await program.kill("SIGTERM");
    using grace = createDeadline({ clock, ms: STOP_GRACE_MS });
    const isGone = await raceSignal(program.done, grace.signal).then(
      () => true,
      () => false,
    );
    if (isGone) return;
    await program.kill("SIGKILL");
    await program.done;
  })();
  if (signal === undefined) await stopping;
  else await orAborted(stopping, signal);
}

/** The same as `raceSignal`, with an abort as a `SandboxError`. */
export async function orAborted<T>(promise: Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (signal === undefined) return await promise;
  try {
    return await raceSignal(promise, signal);
  } catch (thrown) {
    // What goes on without a listener must not end the process when it fails.
    promise.catch(() => undefined);
    throw SandboxError.from(thrown);
  }
}
