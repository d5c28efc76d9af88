import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorDetailSchema } from "@turnbox/protocol/turnbox/common/v1/error_pb";
import { invalidArgument, SandboxError } from "@turnbox/core";
import { fromConnectError, toConnectError } from "../wire/connect-error.ts";

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

/** A failure of the protocol layer as an error of the table, if it has one. All else passes as it is. */
export function toRefusal(thrown: unknown): unknown {
  return thrown instanceof ConnectError ? ofConnect(thrown) : thrown;
}

/** How the protocol layer begins what it says of a message that does not decode. */
const UNDECODED = "parse binary: ";

/** Codes that say no more than that something broke; their messages may reveal what callers must not know. */
const OPAQUE: ReadonlySet<Code> = new Set([Code.Internal, Code.Unknown, Code.DataLoss]);

/**
 * A ConnectError that is not ours comes from the protocol layer (malformed JSON, a message beyond the limit, a method
 * that is not there) or from a standard gRPC service, whose codes are part of its contract and pass as they are.
 */
function ofConnect(thrown: ConnectError): SandboxError | ConnectError {
  if (thrown.findDetails(ErrorDetailSchema).length > 0) return fromConnectError(thrown);
  if (thrown.rawMessage.startsWith(UNDECODED)) return invalidArgument("request", "does not decode");
  if (OPAQUE.has(thrown.code)) return new SandboxError("INTERNAL", "an unexpected failure", { cause: thrown });
  if (thrown.code === Code.ResourceExhausted) {
    // The protocol layer knows one limit: the size of a message. Sending the same one again cannot help.
    return new SandboxError("INVALID_ARGUMENT", thrown.rawMessage, {
      metadata: { rule: "message size" },
      cause: thrown,
    });
  }
  if (thrown.code === Code.InvalidArgument) return ofUndecoded(thrown.rawMessage);
  const error = fromConnectError(thrown);
  return error.row.code === thrown.code ? error : thrown;
}

/** What the parser of JSON says of a field, by its full name. */
const JSON_FIELD = /^cannot decode (?:field|oneof) [\w.]*?(\w+) from JSON: (.*)$/s;

/** It may quote the request, which is as long as its sender likes. */
const MAX_MESSAGE_CHARACTERS = 500;

function ofUndecoded(message: string): SandboxError {
  const [, field, rule] = JSON_FIELD.exec(message) ?? [];
  const shown = (text: string): string => text.slice(0, MAX_MESSAGE_CHARACTERS).toWellFormed();
  if (field === undefined || rule === undefined) return new SandboxError("INVALID_ARGUMENT", shown(message));
  return invalidArgument(field, `does not decode: ${shown(rule)}`);
}
