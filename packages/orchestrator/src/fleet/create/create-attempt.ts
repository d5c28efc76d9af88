import { SandboxError } from "@turnbox/core";
import type { ControlCall, CreateSandboxRequest } from "../../control/sandbox-control.ts";
import type { IdempotencyRef } from "../../store/store.ts";

/** What a caller wants made. */
export interface CreateWish {
  readonly request: CreateSandboxRequest;
  /** Detached from the caller: what was begun is brought to its end. */
  readonly call: ControlCall;
  /** Aborts when no caller waits for the sandbox any more: until a host is asked, that is the end of it. */
  readonly wanted: AbortSignal;
  /** Whether no caller waits for it at this moment; if so, it is given up for good. */
  readonly giveUpIfAbandoned: () => boolean;
  /** How long it may wait for room. */
  readonly patienceMs: number;
}

/** One create that is on record. The session's id is the same on every host that is asked. */
export interface CreateAttempt extends CreateWish {
  readonly sessionId: string;
  /** Whether an earlier call began it under the same key, so that a host may have made it then. */
  readonly begun: "now" | "before";
  /** Absent if the request has none. */
  readonly key?: IdempotencyRef;
}

/** A call of this replica's own, independent of the caller's. */
export interface Own {
  readonly signal: AbortSignal;
}

const TAKEN_OVER_RETRY_MS = 1000;

export const isUnknown = (error: unknown): boolean => SandboxError.from(error).admitted === "unknown";

/** The same failure, of a create that may have been made all the same. */
export function outcomeUnknown(cause: unknown): SandboxError {
  const { reason, message } = SandboxError.from(cause);
  return new SandboxError(reason, message, { admitted: "unknown", cause });
}

/** Another replica makes the same sandbox; a call under the same key finds out what came of it. */
export function takenOver(): SandboxError {
  return new SandboxError("OVERLOADED", "another orchestrator makes this sandbox at this moment", {
    admitted: "unknown",
    retryAfterMs: TAKEN_OVER_RETRY_MS,
  });
}

export function unknownOnHost(instanceId: string, cause: SandboxError): SandboxError {
  return new SandboxError(
    "HOST_UNREACHABLE",
    `the instance ${instanceId} did not say what became of the create: ${cause.message}`,
    { admitted: "unknown", metadata: { instanceId }, cause },
  );
}
