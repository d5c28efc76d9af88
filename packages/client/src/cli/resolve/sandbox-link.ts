import { type Clock, hasReason } from "@turnbox/core";
import type { TurnboxClients } from "../../client.ts";
import type { Invocation } from "../invocation.ts";
import { type OpenSandbox, openSandbox } from "./resolve-sandbox.ts";

/** How long a host may be away before its callers are told. */
const PATIENCE_MS = 30_000;
const RETRY_MS = 500;

/**
 * A sandbox on its host, for calls that may be made again: streams that go on from an offset, input at an offset, calls
 * with a key. A connection that breaks, a host that restarts and a token that runs out are got over by asking the server
 * again where the sandbox is.
 */
export interface SandboxLink extends Disposable {
  readonly sandboxId: string;
  /** Makes the call, again if need be. `progress` says that something arrived, and renews the patience. */
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

export async function openLink(
  { server, reference, clock, signal }: LinkOptions,
  { host }: Pick<Invocation, "host">,
): Promise<SandboxLink> {
  let current = await openSandbox(server, reference, { host, signal });
  const { sandboxId } = current;

  /** Several calls may fail at once; the first of them replaces the connection. */
  const replace = async (broken: OpenSandbox): Promise<void> => {
    const fresh = await openSandbox(server, sandboxId, { host, signal });
    const old = current === broken ? current : fresh;
    if (old === current) current = fresh;
    old[Symbol.dispose]();
  };

  return {
    sandboxId,
    use: async (call) => {
      let untilMs: number | undefined;
      const progress = (): void => {
        untilMs = undefined;
      };
      for (;;) {
        const sandbox = current;
        try {
          return await call(sandbox, progress);
        } catch (thrown) {
          untilMs = await waitOrThrow(thrown, untilMs, { clock, signal });
        }
        await replace(sandbox).catch((thrown: unknown) => {
          if (!isBroken(thrown)) throw thrown;
        });
      }
    },
    [Symbol.dispose]: () => {
      current[Symbol.dispose]();
    },
  };
}

const isBroken = (thrown: unknown): boolean =>
  hasReason(thrown, "HOST_UNREACHABLE", "SERVER_UNREACHABLE", "SHUTTING_DOWN", "UNAUTHENTICATED");

/** Answers with when the patience ends. */
async function waitOrThrow(
  thrown: unknown,
  untilMs: number | undefined,
  { clock, signal }: Pick<LinkOptions, "clock" | "signal">,
): Promise<number> {
  const nowMs = clock.monotonicMs();
  const endMs = untilMs ?? nowMs + PATIENCE_MS;
  if (signal.aborted || !isBroken(thrown) || nowMs >= endMs) throw thrown;
  await clock.sleep(RETRY_MS, { signal });
  return endMs;
}
