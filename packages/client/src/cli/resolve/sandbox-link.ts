import type { Clock } from "@turnbox/core";
import type { TurnboxClients } from "../../client.ts";
import { createLink, type OpenSandbox } from "../../sandbox/link/sandbox-link.ts";
import type { Invocation } from "../invocation.ts";
import { resolveSandbox } from "./resolve-sandbox.ts";

/** The library's link, whose waiting a verb's signal ends. */
export interface SandboxLink extends Disposable {
  readonly sandboxId: string;
  /** Makes a call that may be made again: a read, or one with a key or an offset. */
  use<T>(call: (sandbox: OpenSandbox, progress: () => void) => Promise<T>): Promise<T>;
}

export interface LinkOptions {
  readonly server: TurnboxClients;
  /** What the user typed for the sandbox. */
  readonly reference: string;
  readonly clock: Clock;
  /** Ends the waiting; the calls have their own. */
  readonly signal: AbortSignal;
}

/** Looks the sandbox up; where it is, is asked with the first call. */
export async function openLink(
  { server, reference, clock, signal }: LinkOptions,
  { host }: Pick<Invocation, "host">,
): Promise<SandboxLink> {
  const sandboxId = await resolveSandbox(server, reference, { signal });
  const link = createLink({ server, sandboxId, clock, host });
  return { sandboxId, use: (call) => link.use(call, { signal }), [Symbol.dispose]: link[Symbol.dispose] };
}
