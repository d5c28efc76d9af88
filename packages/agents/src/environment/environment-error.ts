import { type Reason, SandboxError } from "@turnbox/client";
import type { EnvironmentCapabilities } from "./execution-environment.ts";

/** What the providers' own reasons are called by callers of an environment. */
const COMMON_REASONS: Readonly<Partial<Record<Reason, Reason>>> = {
  SNAPSHOTS_NOT_AVAILABLE: "CAPABILITY_NOT_SUPPORTED",
  UNIMPLEMENTED: "CAPABILITY_NOT_SUPPORTED",
  SANDBOX_NOT_FOUND: "SESSION_NOT_FOUND",
  REMOTE_SANDBOX_NOT_FOUND: "SESSION_NOT_FOUND",
  SESSION_PAUSED: "SESSION_NOT_ACTIVE",
  SESSION_DESTROYING: "SESSION_NOT_ACTIVE",
  INVALID_STATE: "SESSION_NOT_ACTIVE",
  HOST_UNREACHABLE: "PROVIDER_UNAVAILABLE",
  SERVER_UNREACHABLE: "PROVIDER_UNAVAILABLE",
  SHUTTING_DOWN: "PROVIDER_UNAVAILABLE",
  MAX_SESSIONS_REACHED: "SESSION_LIMIT_REACHED",
  FLEET_EXHAUSTED: "SESSION_LIMIT_REACHED",
};

/** The failure as an environment has it: one of its five reasons if one fits, the provider's own otherwise. */
export function toEnvironmentError(thrown: unknown): SandboxError {
  const error = SandboxError.from(thrown);
  const reason = COMMON_REASONS[error.reason];
  if (reason === undefined) return error;
  return new SandboxError(reason, error.message, {
    cause: error,
    admitted: error.admitted,
    metadata: { ...error.metadata, providerReason: error.reason },
    ...(error.retryAfterMs === undefined ? {} : { retryAfterMs: error.retryAfterMs }),
    ...(error.currentGeneration === undefined ? {} : { currentGeneration: error.currentGeneration }),
  });
}

/** Runs a call of the provider; its failure is an environment's. */
export async function asEnvironment<T>(call: () => Promise<T>): Promise<T> {
  try {
    return await call();
  } catch (thrown) {
    throw toEnvironmentError(thrown);
  }
}

export function notSupported(capability: string, why: string): SandboxError {
  return new SandboxError("CAPABILITY_NOT_SUPPORTED", `${capability}: ${why}`, { metadata: { capability } });
}

/** Refuses what the capabilities do not have. */
export function assertCapability(
  capabilities: EnvironmentCapabilities,
  capability: "snapshots" | "rollback" | "pause" | "lifecycle",
  why = "this environment does not have it",
): void {
  if (!capabilities[capability]) throw notSupported(capability, why);
}

export function notActive(state: string, what: string): SandboxError {
  return new SandboxError("SESSION_NOT_ACTIVE", `${what} needs an active session; this one is ${state}`, {
    metadata: { state },
  });
}
