import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorDetailSchema } from "@turnbox/protocol/turnbox/common/v1/error_pb";
import { SandboxError } from "../error/sandbox-error.ts";
import { fromConnectError, toConnectError } from "../error/wire.ts";

/** What a failed call answers, and what the log keeps. */
export interface Failure {
  readonly answer: ConnectError;
  /** The cause of an INTERNAL failure; it stays on this side. */
  readonly internalCause?: unknown;
}

/** Any throw as an answer with an `ErrorDetail`. */
export function toFailure(thrown: unknown, requestId: string): Failure {
  const error = thrown instanceof ConnectError ? ofConnect(thrown) : SandboxError.from(thrown);
  if (error instanceof ConnectError) return { answer: error };
  const answer = toConnectError(error, requestId);
  return error.reason === "INTERNAL" ? { answer, internalCause: error.cause ?? error } : { answer };
}

/** Codes that say no more than that something broke; their messages may tell what is nobody's business. */
const OPAQUE: ReadonlySet<Code> = new Set([Code.Internal, Code.Unknown, Code.DataLoss]);

/**
 * A ConnectError that is not ours comes from the protocol layer (malformed JSON, a message beyond the limit, a method
 * that is not there) or from a standard gRPC service, whose codes are part of its contract and pass as they are.
 */
function ofConnect(thrown: ConnectError): SandboxError | ConnectError {
  if (thrown.findDetails(ErrorDetailSchema).length > 0) return fromConnectError(thrown);
  if (OPAQUE.has(thrown.code)) return new SandboxError("INTERNAL", "an unexpected failure", { cause: thrown });
  if (thrown.code === Code.ResourceExhausted) {
    // The protocol layer knows one limit: the size of a message. Sending the same one again cannot help.
    return new SandboxError("INVALID_ARGUMENT", thrown.rawMessage, {
      metadata: { rule: "message size" },
      cause: thrown,
    });
  }
  const error = fromConnectError(thrown);
  return error.row.code === thrown.code ? error : thrown;
}
