import { SandboxError } from "@turnbox/core";

/**
 * What a failed call to EC2 means:
 *
 * - `no_room`: not this type in this zone now; another one may do.
 * - `mismatch`: the client token was used before, for something else.
 * - `not_found`: EC2 does not know the machine, or not yet.
 * - `wrong_state`: not while the machine is in its present state.
 * - `throttled`: refused unread, after all tries.
 * - `unknown`: it may have had its effect.
 * - `denied`: the credentials are missing or do not suffice.
 * - `refused`: the same call fails again.
 */
export type Ec2Failure =
  | "no_room"
  | "mismatch"
  | "not_found"
  | "wrong_state"
  | "throttled"
  | "unknown"
  | "denied"
  | "refused";

const BY_CODE: ReadonlyMap<string, Ec2Failure> = new Map<string, Ec2Failure>([
  ["InsufficientInstanceCapacity", "no_room"],
  ["InsufficientHostCapacity", "no_room"],
  ["InsufficientReservedInstanceCapacity", "no_room"],
  ["InsufficientCapacityOnHost", "no_room"],
  ["InsufficientFreeAddressesInSubnet", "no_room"],
  ["InstanceLimitExceeded", "no_room"],
  ["VcpuLimitExceeded", "no_room"],
  ["MaxSpotInstanceCountExceeded", "no_room"],
  ["SpotMaxPriceTooLow", "no_room"],
  ["Unsupported", "no_room"],
  ["UnfulfillableCapacity", "no_room"],
  ["IdempotentParameterMismatch", "mismatch"],
  ["InvalidInstanceID.NotFound", "not_found"],
  ["IncorrectInstanceState", "wrong_state"],
  ["IncorrectState", "wrong_state"],
  ["RequestLimitExceeded", "throttled"],
  ["Throttling", "throttled"],
  ["ThrottlingException", "throttled"],
  ["EC2ThrottledException", "throttled"],
  ["UnauthorizedOperation", "denied"],
  ["AuthFailure", "denied"],
  ["Blocked", "denied"],
  ["OptInRequired", "denied"],
  ["PendingVerification", "denied"],
  ["ExpiredToken", "denied"],
  ["RequestExpired", "denied"],
  ["CredentialsProviderError", "denied"],
]);

/** The code that EC2 or the SDK gave a failure. */
export function codeOf(error: unknown): string {
  return error instanceof Error || isNamed(error) ? error.name : "Unknown";
}

export function classify(error: unknown): Ec2Failure {
  const known = BY_CODE.get(codeOf(error));
  if (known !== undefined) return known;
  const status = statusOf(error);
  return status !== undefined && status >= 400 && status < 500 ? "refused" : "unknown";
}

/** The failure as the fleet knows it. A `SandboxError` and the reason of an aborted signal pass as they are. */
export function sandboxErrorOf(error: unknown, what: string): SandboxError {
  if (error instanceof SandboxError) return error;
  const kind = classify(error);
  const code = codeOf(error);
  const message = `EC2 could not ${what}: ${code}${error instanceof Error ? `: ${error.message}` : ""}`;
  const more = { cause: error, metadata: { code } };
  switch (kind) {
    case "no_room":
      return new SandboxError("FLEET_EXHAUSTED", message, { ...more, admitted: "no" });
    case "mismatch":
      return new SandboxError("IDEMPOTENCY_CONFLICT", message, { ...more, admitted: "unknown" });
    case "not_found":
      return new SandboxError("INSTANCE_NOT_FOUND", message, more);
    case "wrong_state":
      return new SandboxError("INVALID_STATE", message, more);
    case "throttled":
    case "denied":
      return new SandboxError("PROVIDER_UNAVAILABLE", message, { ...more, admitted: "no" });
    case "unknown":
      return new SandboxError("PROVIDER_UNAVAILABLE", message, { ...more, admitted: "unknown" });
    case "refused":
      return new SandboxError("CONFIG_INVALID", message, more);
  }
}

function isNamed(error: unknown): error is { readonly name: string } {
  return typeof error === "object" && error !== null && "name" in error && typeof error.name === "string";
}

function statusOf(error: unknown): number | undefined {
  if (typeof error !== "object" || error === null || !("$metadata" in error)) return undefined;
  return (error.$metadata as { readonly httpStatusCode?: number }).httpStatusCode;
}
