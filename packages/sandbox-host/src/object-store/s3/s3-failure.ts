import { type Admitted, errnoOf, isNeverSent, type Reason, SandboxError } from "@turnbox/core";

/**
 * What a failed request to a server of S3 means. The only place that knows the codes of such servers.
 *
 * - `not_found`: there is no such object, or no such upload.
 * - `changed`: a condition does not hold.
 * - `busy`: refused unread, or undone for the sake of another request: it may be sent again.
 * - `spoiled`: what arrived is not what was sent: it may be sent again.
 * - `full`: there is no room.
 * - `nested`: the server's objects are files, and the key is a folder of another one, or has one for a folder.
 * - `denied`: the same request fails again.
 * - `unknown`: it may have had its effect.
 */
export type S3Failure = "not_found" | "changed" | "busy" | "spoiled" | "full" | "nested" | "denied" | "unknown";

const CODES: Readonly<Record<S3Failure, readonly string[]>> = {
  not_found: ["NoSuchKey", "NotFound", "NoSuchUpload", "NoSuchVersion"],
  changed: ["PreconditionFailed"],
  busy: [
    ...["SlowDown", "SlowDownRead", "SlowDownWrite", "Throttling", "ThrottlingException", "RequestLimitExceeded"],
    ...["TooManyRequests", "ConditionalRequestConflict", "OperationAborted", "RequestTimeTooSkewed", "ServerBusy"],
  ],
  spoiled: ["BadDigest", "InvalidDigest", "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch", "IncompleteBody"],
  full: [
    ...["QuotaExceeded", "StorageFull", "InsufficientStorage", "InsufficientCapacity", "ServiceQuotaExceeded"],
    ...["XMinioStorageFull", "XMinioAdminBucketQuotaExceeded"],
  ],
  nested: [
    ...["ObjectParentIsFile", "ExistingObjectIsDirectory", "XMinioParentIsObject", "XMinioObjectExistsAsDirectory"],
  ],
  // Other codes are judged by their status; these have none, or one that says something else.
  denied: ["NoSuchBucket", "NotImplemented", "CredentialsProviderError", "AccessDenied"],
  unknown: ["InternalError", "ServiceUnavailable", "RequestTimeout"],
};

const BY_CODE: ReadonlyMap<string, S3Failure> = new Map(
  Object.entries(CODES).flatMap(([kind, codes]) => codes.map((code) => [code, kind as S3Failure] as const)),
);

const BY_STATUS: ReadonlyMap<number, S3Failure> = new Map<number, S3Failure>([
  [404, "not_found"],
  [408, "unknown"],
  [409, "busy"],
  [412, "changed"],
  [429, "busy"],
  [507, "full"],
]);

const REASONS: Readonly<Record<S3Failure, { readonly reason: Reason; readonly admitted: Admitted }>> = {
  not_found: { reason: "OBJECT_NOT_FOUND", admitted: "no" },
  changed: { reason: "OBJECT_CHANGED", admitted: "no" },
  busy: { reason: "OBJECT_STORE_UNAVAILABLE", admitted: "no" },
  spoiled: { reason: "OBJECT_STORE_UNAVAILABLE", admitted: "no" },
  full: { reason: "OBJECT_STORE_FULL", admitted: "no" },
  nested: { reason: "INVALID_ARGUMENT", admitted: "no" },
  denied: { reason: "OBJECT_STORE_DENIED", admitted: "no" },
  unknown: { reason: "OBJECT_STORE_UNAVAILABLE", admitted: "unknown" },
};

/** Names that the SDK gives an answer without a code. */
const NO_CODE = ["Unknown", "UnknownError", "Error", "S3ServiceException"];

export function classify(thrown: unknown): S3Failure {
  const known = BY_CODE.get(codeOf(thrown));
  if (known !== undefined) return known;
  const status = statusOf(thrown);
  // Without an answer: a connection that failed, or a fault of ours, which fails again.
  if (status === undefined) return isOwnFault(thrown) ? "denied" : "unknown";
  return BY_STATUS.get(status) ?? (status >= 500 ? "unknown" : "denied");
}

/** The failure as the port names it. `what` says in a few words what was asked for. */
export function s3Failure(thrown: unknown, what: string): SandboxError {
  if (thrown instanceof SandboxError) return thrown;
  const { reason, admitted } = REASONS[classify(thrown)];
  const errno = errnoOf(thrown);
  const isUnsent = errno !== undefined && isNeverSent(errno);
  const code = codeOf(thrown);
  const said = thrown instanceof Error ? thrown.message : "";
  return new SandboxError(reason, `the object store could not ${what}: ${code}${said === "" ? "" : `: ${said}`}`, {
    cause: thrown,
    metadata: { code },
    admitted: isUnsent ? "no" : admitted,
  });
}

/** The code of the server, or the name that the SDK or the system gave the failure. */
export function codeOf(thrown: unknown): string {
  if (typeof thrown !== "object" || thrown === null) return "Unknown";
  const { Code: code, name } = thrown as { readonly Code?: unknown; readonly name?: unknown };
  if (typeof code === "string" && code !== "") return code;
  if (typeof name === "string" && !NO_CODE.includes(name)) return name;
  const status = statusOf(thrown);
  return errnoOf(thrown) ?? (status === undefined ? "Unknown" : `HTTP ${status}`);
}

function isOwnFault(thrown: unknown): boolean {
  return ["TypeError", "RangeError"].includes(codeOf(thrown));
}

function statusOf(thrown: unknown): number | undefined {
  if (typeof thrown !== "object" || thrown === null || !("$metadata" in thrown)) return undefined;
  return (thrown.$metadata as { readonly httpStatusCode?: number }).httpStatusCode;
}
