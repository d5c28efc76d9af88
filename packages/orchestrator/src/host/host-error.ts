import { Code, ConnectError } from "@connectrpc/connect";
import { errnoOf, isNeverSent, type Reason, SandboxError } from "@turnbox/core";
import { fromConnectError } from "@turnbox/rpc/wire";
import { ErrorDetailSchema } from "@turnbox/protocol/turnbox/common/v1/error_pb";

/** Codes that the transport uses for a connection that broke, if no host has said anything. */
const BROKEN: ReadonlySet<Code> = new Set([Code.Unavailable, Code.Aborted, Code.Internal, Code.Unknown, Code.Canceled]);

/** What is a session to the host is a sandbox to callers of the fleet. */
const RENAMED: Readonly<Partial<Record<Reason, Reason>>> = { SESSION_NOT_FOUND: "SANDBOX_NOT_FOUND" };

/**
 * What went wrong with a call to a host, from what the transport threw. What the host itself said passes; a connection
 * that could not be made or broke is `HOST_UNREACHABLE`, which says whether anything may have been admitted.
 */
export function fromHostError(
  thrown: unknown,
  { signal, url }: { readonly signal: AbortSignal; readonly url: string },
): SandboxError {
  if (thrown instanceof SandboxError) return thrown;
  const error = ConnectError.from(thrown);
  if (error.findDetails(ErrorDetailSchema).length > 0) return renamed(fromConnectError(error));
  if (signal.aborted) return leftBy(signal);
  const errno = errnoOf(error);
  if (errno !== undefined && isNeverSent(errno)) {
    return new SandboxError("HOST_UNREACHABLE", `the host at ${url} cannot be connected to (${errno})`, {
      admitted: "no",
      cause: thrown,
    });
  }
  if (BROKEN.has(error.code)) {
    const why = errno ?? error.rawMessage;
    return new SandboxError("HOST_UNREACHABLE", `the connection to the host at ${url} broke (${why})`, {
      admitted: "unknown",
      cause: thrown,
    });
  }
  return fromConnectError(error);
}

/** The caller's own reason for leaving, if it has one; the request may have been admitted all the same. */
function leftBy(signal: AbortSignal): SandboxError {
  const reason = SandboxError.from(signal.reason);
  if (reason.reason === "INTERNAL") {
    return new SandboxError("CANCELLED", "the call was cancelled", { admitted: "unknown", cause: signal.reason });
  }
  return new SandboxError(reason.reason, reason.message, { admitted: "unknown", cause: signal.reason });
}

function renamed(error: SandboxError): SandboxError {
  const reason = RENAMED[error.reason];
  if (reason === undefined) return error;
  return new SandboxError(reason, error.message, { metadata: error.metadata, admitted: error.admitted, cause: error });
}
