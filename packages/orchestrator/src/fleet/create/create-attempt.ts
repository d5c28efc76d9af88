import { SandboxError } from "@turnbox/core";
import type { IdempotencyRef } from "../../store/store.ts";
import type { ControlCall, CreateSandboxRequest } from "../../control/sandbox-control.ts";

/** One create, from the first candidate to the end. The session's id is the same on every host that is asked. */
export interface CreateAttempt {
  readonly request: CreateSandboxRequest;
  readonly sessionId: string;
  readonly call: ControlCall;
  /** Aborts when nobody waits for the sandbox any more: until a host is asked, that is the end of it. */
  readonly wanted: AbortSignal;
  /** How long it may wait for room. */
  readonly patienceMs: number;
  /** Whether somebody began it under the same key before, and a host may have made it then. */
  readonly begun: "now" | "before";
  readonly key: IdempotencyRef | undefined;
  /** Throws where the key has been freed and begun anew by another replica. The row is there by then. */
  readonly confirm: () => Promise<void>;
  /** The instance that its row names, as far as this replica knows; another one may go on with the same sandbox. */
  readonly track: { at: string | undefined };
}

/** A call of this replica's own, whoever it began for. */
export interface Own {
  readonly signal: AbortSignal;
}

const TAKEN_OVER_RETRY_MS = 1000;

export const isUnknown = (error: unknown): boolean => SandboxError.from(error).admitted === "unknown";

/** Another replica makes the same sandbox; whoever asks again under the same key finds out what came of it. */
export function takenOver(): SandboxError {
  return new SandboxError("OVERLOADED", "another orchestrator makes this sandbox at this moment", {
    admitted: "unknown",
    retryAfterMs: TAKEN_OVER_RETRY_MS,
  });
}

export function unknownOutcome(instanceId: string, cause: SandboxError): SandboxError {
  return new SandboxError(
    "HOST_UNREACHABLE",
    `the instance ${instanceId} did not say what became of the create: ${cause.message}`,
    {
      admitted: "unknown",
      metadata: { instanceId },
      cause,
    },
  );
}
