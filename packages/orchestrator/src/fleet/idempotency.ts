import { createHash } from "node:crypto";
import { SandboxError } from "@turnbox/core";

/** A digest of a request's content that does not depend on the order in which its maps arrived. */
export function hashPayload(payload: unknown): string {
  const canonical = JSON.stringify(payload, (_key, value: unknown) =>
    typeof value === "object" && value !== null && !Array.isArray(value)
      ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
      : value,
  );
  return createHash("sha256").update(canonical).digest("hex");
}

export function idempotencyConflict(key: string): SandboxError {
  return new SandboxError("IDEMPOTENCY_CONFLICT", "idempotency_key: was used before with another request", {
    metadata: { field: "idempotency_key", key },
  });
}
