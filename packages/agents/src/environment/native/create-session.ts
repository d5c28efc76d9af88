import { randomUUID } from "node:crypto";
import {
  DEFAULT_TIMEOUT_MS,
  hasReason,
  type HostSession,
  type SandboxCapabilities,
  SandboxError,
} from "@turnbox/client";
import type { EnvironmentConfig } from "../execution-environment.ts";
import { assertExpected, type NativeSandboxConfig } from "./native-sandbox-config.ts";
import { toSessionOptions } from "./session-options.ts";

export interface SessionMaker {
  readonly session: HostSession;
  readonly expected: NativeSandboxConfig;
}

/** Asks a host what it can do, once, and refuses one that has less than is expected. */
export async function negotiate(
  { session, expected }: SessionMaker,
  signal: AbortSignal,
): Promise<SandboxCapabilities> {
  return checked(expected, await session.capabilities({ signal }));
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
  const { session, expected } = maker;
  const wanted = {
    ...toSessionOptions(config.options ?? {}),
    idempotencyKey: randomUUID(),
    ...(config.baseImage === undefined ? {} : { base: config.baseImage }),
    ...(config.labels === undefined ? {} : { labels: config.labels }),
  };
  await negotiate(maker, signal);
  try {
    return checked(expected, await session.create({ ...wanted, signal }), "made");
  } catch (thrown) {
    const error = SandboxError.from(thrown);
    if (error.admitted !== "no")
      await undo(session, () => session.create({ ...wanted, timeoutMs: DEFAULT_TIMEOUT_MS.cleanup }));
    throw error;
  }
}

export async function destroySession(session: HostSession, idempotencyKey: string): Promise<void> {
  try {
    await session.destroy({ idempotencyKey });
  } catch (thrown) {
    if (!hasReason(thrown, "SESSION_NOT_FOUND")) throw thrown;
  }
}

/**
 * A create whose outcome is not known is asked again under its key, which says what became of it and makes no second
 * session; a session of the same id of another owner is refused there, and left alone.
 */
async function undo(session: HostSession, createAgain: () => Promise<unknown>): Promise<void> {
  try {
    await createAgain();
    await destroySession(session, randomUUID());
  } catch {
    // The caller gets the first failure; its `admitted` says that the effect is not known.
  }
}

function checked(
  expected: NativeSandboxConfig,
  capabilities: SandboxCapabilities,
  session: "none" | "made" = "none",
): SandboxCapabilities {
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
