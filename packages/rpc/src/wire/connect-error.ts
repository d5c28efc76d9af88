import { create } from "@bufbuild/protobuf";
import { durationFromMs, durationMs } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import { Admitted as WireAdmitted, ErrorDetailSchema } from "@turnbox/protocol/turnbox/common/v1/error_pb";
import {
  type Admitted,
  ERROR_TABLE,
  isReason,
  type Reason,
  SandboxError,
  type SandboxErrorOptions,
} from "@turnbox/core";

const TO_WIRE = {
  yes: WireAdmitted.YES,
  no: WireAdmitted.NO,
  unknown: WireAdmitted.UNKNOWN,
} as const satisfies Record<Admitted, WireAdmitted>;

const FROM_WIRE: ReadonlyMap<WireAdmitted, Admitted> = new Map([
  [WireAdmitted.YES, "yes"],
  [WireAdmitted.NO, "no"],
  [WireAdmitted.UNKNOWN, "unknown"],
]);

/** A gRPC answer has its error in a trailer, which clients bound as a whole. */
const MAX_MESSAGE_BYTES = 1024;
const MAX_VALUE_BYTES = 512;

/** Text of an error may quote the request: as much of it as an answer has room for, and only what is Unicode. */
function quotable(text: string, maxBytes: number): string {
  const bytes = Buffer.from(text.toWellFormed());
  if (bytes.length <= maxBytes) return text.toWellFormed();
  return `${bytes
    .subarray(0, maxBytes)
    .toString()
    .replace(/\ufffd$/, "")}…`;
}

/** What a caller gets: the code of the table and an `ErrorDetail`. Causes and stacks stay on this side. */
export function toConnectError(thrown: unknown, requestId: string): ConnectError {
  const error = SandboxError.from(thrown);
  const detail = create(ErrorDetailSchema, {
    reason: error.reason,
    retryable: error.retryable,
    admitted: TO_WIRE[error.admitted],
    remedy: error.remedy,
    metadata: Object.fromEntries(
      Object.entries(error.metadata).map(([name, value]) => [name, quotable(value, MAX_VALUE_BYTES)]),
    ),
    requestId,
    ...(error.retryAfterMs === undefined ? {} : { retryAfter: durationFromMs(error.retryAfterMs) }),
    ...(error.currentGeneration === undefined ? {} : { currentGeneration: error.currentGeneration }),
  });
  const message = quotable(error.message, MAX_MESSAGE_BYTES);
  return new ConnectError(message, error.row.code, undefined, [{ desc: ErrorDetailSchema, value: detail }]);
}

/** The way back: from what a call threw to the reason. A peer that sends no detail is judged by its code alone. */
export function fromConnectError(thrown: unknown): SandboxError {
  if (!(thrown instanceof ConnectError)) {
    const local = SandboxError.from(thrown);
    if (local.reason !== "INTERNAL") return local;
  }
  const error = ConnectError.from(thrown);
  const detail = error.findDetails(ErrorDetailSchema)[0];
  if (detail === undefined) return new SandboxError(reasonOfCode(error.code), error.rawMessage, { cause: thrown });
  const admitted = FROM_WIRE.get(detail.admitted);
  const options: SandboxErrorOptions = {
    metadata: { ...detail.metadata, ...(detail.requestId === "" ? {} : { requestId: detail.requestId }) },
    ...(admitted === undefined ? {} : { admitted }),
    ...(detail.retryAfter === undefined ? {} : { retryAfterMs: durationMs(detail.retryAfter) }),
    ...(detail.currentGeneration === undefined ? {} : { currentGeneration: detail.currentGeneration }),
    cause: thrown,
  };
  return new SandboxError(
    isReason(detail.reason) ? detail.reason : reasonOfCode(error.code),
    error.rawMessage,
    options,
  );
}

/** The general reason for a bare code: one that promises nothing the code does not say. */
function reasonOfCode(code: Code): Reason {
  const general = GENERAL_REASON[code];
  return general !== undefined && ERROR_TABLE[general].code === code ? general : "INTERNAL";
}

const GENERAL_REASON: Readonly<Partial<Record<Code, Reason>>> = {
  [Code.InvalidArgument]: "INVALID_ARGUMENT",
  [Code.Unauthenticated]: "UNAUTHENTICATED",
  [Code.PermissionDenied]: "PERMISSION_DENIED",
  [Code.Unimplemented]: "UNIMPLEMENTED",
  [Code.Canceled]: "CANCELLED",
  [Code.DeadlineExceeded]: "DEADLINE_EXCEEDED",
  [Code.ResourceExhausted]: "OVERLOADED",
  [Code.Unavailable]: "HOST_UNREACHABLE",
  [Code.FailedPrecondition]: "INVALID_STATE",
};
