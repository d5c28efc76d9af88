import { SandboxError } from "@turnbox/core";

export function idempotencyConflict(key: string): SandboxError {
  return new SandboxError("IDEMPOTENCY_CONFLICT", "idempotency_key: was used before with another request", {
    metadata: { field: "idempotency_key", key },
  });
}
