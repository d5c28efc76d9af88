import { SandboxError } from "@turnbox/core";

/** The key is not there, or may not be used by these credentials or at all. */
const WRONG_KEY = new Set([
  "AccessDeniedException",
  "DisabledException",
  "IncorrectKeyException",
  "InvalidArnException",
  "InvalidKeyUsageException",
  "KMSInvalidStateException",
  "KeyUnavailableException",
  "NotFoundException",
]);
const DAMAGED = new Set(["InvalidCiphertextException"]);

/** What a failed call of KMS means. The reason of an aborted signal passes as it is. */
export function kmsFailure(failure: unknown, keyId: string, signal: AbortSignal): unknown {
  if (signal.aborted) return signal.reason;
  const name = failure instanceof Error ? failure.name : "Unknown";
  const more = { metadata: { keyId, code: name }, cause: failure };
  if (WRONG_KEY.has(name))
    return new SandboxError("ARCHIVE_KEY_WRONG", `the key ${keyId} is needed, and KMS says ${name}`, more);
  if (DAMAGED.has(name))
    return new SandboxError(
      "ARCHIVE_DAMAGED",
      `the data key that is wrapped by ${keyId} was changed, or was wrapped for another owner`,
      { ...more, metadata: { ...more.metadata, fault: "wrapped key" } },
    );
  return new SandboxError("ARCHIVE_KEY_UNAVAILABLE", `KMS could not use the key ${keyId}: ${name}`, more);
}
