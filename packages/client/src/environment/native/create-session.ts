import { randomUUID } from "node:crypto";
import { createDeadline, hasReason, parseSessionId, SandboxError } from "@turnbox/core";
import type { HostClients } from "../../client.ts";
import type { HostCalls } from "../../sandbox/host-call.ts";
import { DEFAULT_TIMEOUT_MS } from "../../sandbox/link/default-timeouts.ts";
import type { SandboxCapabilities } from "../../sandbox/sandbox-info.ts";
import { toCapabilities } from "../../sandbox/to-sandbox-info.ts";
import type { EnvironmentConfig } from "../execution-environment.ts";
import { assertExpected, type NativeSandboxConfig } from "./native-sandbox-config.ts";
import { toSessionOptions } from "./session-options.ts";

export interface SessionMaker {
  readonly host: HostClients;
  readonly calls: HostCalls;
  readonly expected: NativeSandboxConfig;
}

/** Asks a host what it can do, once, and refuses one that has less than is expected. */
export async function negotiate(
  { host, calls, expected }: SessionMaker,
  signal: AbortSignal,
): Promise<SandboxCapabilities> {
  using deadline = createDeadline({ clock: calls.clock, ms: DEFAULT_TIMEOUT_MS.read, signal });
  const { capabilities } = await host.host.getCapabilities({}, { signal: deadline.signal });
  return checked(expected, capabilities);
}

/**
 * Makes the session. Capabilities are asked for before anything is made, and looked at again in the answer, since another
 * host may be behind the address by then. A failure leaves no session behind.
 */
export async function createSession(
  maker: SessionMaker,
  config: EnvironmentConfig,
  signal: AbortSignal,
): Promise<SandboxCapabilities> {
  const { calls, expected } = maker;
  const request = {
    idempotencyKey: randomUUID(),
    sessionId: parseSessionId(config.sessionId, "sessionId"),
    base: config.baseImage ?? "",
    labels: { ...config.labels },
    ...toSessionOptions(config.options ?? {}),
  };
  const create = (options: { readonly signal?: AbortSignal; readonly timeoutMs?: number }) =>
    calls.call({ options, timeoutMs: DEFAULT_TIMEOUT_MS.change }, (sandbox, call) =>
      sandbox.host.sessions.createSession(request, { signal: call.signal }),
    );
  await negotiate(maker, signal);
  try {
    const { capabilities } = await create({ signal });
    return checked(expected, capabilities, "made");
  } catch (thrown) {
    const error = SandboxError.from(thrown);
    if (error.admitted !== "no") await undo(calls, () => create({ timeoutMs: DEFAULT_TIMEOUT_MS.cleanup }));
    throw error;
  }
}

export async function destroySession(calls: HostCalls, idempotencyKey: string): Promise<void> {
  const { sessionId } = calls;
  try {
    await calls.call({ options: {}, timeoutMs: DEFAULT_TIMEOUT_MS.change }, ({ host }, { signal }) =>
      host.sessions.destroySession({ idempotencyKey, sessionId }, { signal }),
    );
  } catch (thrown) {
    if (!hasReason(thrown, "SESSION_NOT_FOUND")) throw thrown;
  }
}

/**
 * A create whose outcome is not known is asked again under its key, which tells what became of it and makes no second
 * session; a session of the same id that somebody else has is refused there, and left alone.
 */
async function undo(calls: HostCalls, createAgain: () => Promise<unknown>): Promise<void> {
  try {
    await createAgain();
    await destroySession(calls, randomUUID());
  } catch {
    // The caller hears of the first failure; its `admitted` says that the effect is not known.
  }
}

function checked(
  expected: NativeSandboxConfig,
  wire: Parameters<typeof toCapabilities>[0] | undefined,
  session: "none" | "made" = "none",
): SandboxCapabilities {
  if (wire === undefined) throw new SandboxError("INTERNAL", "the host's answer has no capabilities");
  const capabilities = toCapabilities(wire);
  try {
    assertExpected(expected, capabilities);
  } catch (thrown) {
    const error = SandboxError.from(thrown);
    throw session === "none"
      ? error
      : new SandboxError(error.reason, error.message, { metadata: error.metadata, admitted: "yes" });
  }
  return capabilities;
}
