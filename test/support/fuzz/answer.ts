import { type DescMethod, fromBinary, type JsonValue, toJson } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { errorFromJson } from "@connectrpc/connect/protocol-connect";
import { findTrailerError } from "@connectrpc/connect/protocol-grpc";
import { Admitted, ErrorDetailSchema } from "@turnbox/protocol/turnbox/common/v1/error_pb";
import { isEnveloped } from "./frame.ts";
import type { Input } from "./input.ts";
import type { RawAnswer } from "./wire.ts";

/** What a call came to. */
export type Answer =
  | { readonly kind: "done"; readonly messages: readonly JsonValue[] }
  | {
      readonly kind: "refused";
      readonly code: string;
      readonly reason: string;
      readonly message: string;
      readonly admitted: "yes" | "no" | "unknown";
    }
  /** The test itself cut the call, or the answer is no answer of an RPC (a status of HTTP alone). */
  | { readonly kind: "cut" }
  | { readonly kind: "http"; readonly status: number }
  | { readonly kind: "lost"; readonly why: string };

/** Reasons that lie in the call itself, or in a target that does not exist. Others (a pause, a deadline) pass. */
const LASTING = /^(INVALID_ARGUMENT|UNAUTHENTICATED|PERMISSION_DENIED|UNIMPLEMENTED|TEMPLATE_INVALID|\w+_NOT_FOUND)$/;

/** Whether the service said that nothing changed, for a reason that it gives each time that it gets the call. */
export const isRefusedForGood = (answer: Answer): boolean =>
  answer.kind === "refused" && answer.admitted === "no" && LASTING.test(answer.reason);

const UNREADABLE = new ConnectError("the answer is not readable", Code.DataLoss);

export function readAnswer(input: Input, raw: RawAnswer): Answer {
  if (raw.kind !== "answered") return raw;
  const { status, headers, trailers, body, whole } = raw;
  if (!whole) return { kind: "cut" };
  const type = headers.get("content-type") ?? "";
  if (type.startsWith("application/grpc")) {
    const error = findTrailerError(trailers.has("grpc-status") ? trailers : headers);
    return error === undefined ? done(input, body) : refused(error);
  }
  if (status !== 200) return type === "application/json" ? refused(parseError(body)) : { kind: "http", status };
  return isEnveloped(input.method, input.form) ? readStream(input, body) : done(input, body);
}

const TOLD = { [Admitted.YES]: "yes", [Admitted.NO]: "no" } as const;

function refused(error: ConnectError): Answer {
  const detail = error.findDetails(ErrorDetailSchema)[0];
  const admitted = detail?.admitted ?? Admitted.UNKNOWN;
  return {
    kind: "refused",
    code: Code[error.code],
    reason: detail?.reason ?? "",
    message: error.rawMessage,
    admitted: admitted === Admitted.YES || admitted === Admitted.NO ? TOLD[admitted] : "unknown",
  };
}

function parseError(body: Uint8Array): ConnectError {
  try {
    return errorFromJson(JSON.parse(Buffer.from(body).toString()) as JsonValue, undefined, UNREADABLE);
  } catch {
    return UNREADABLE;
  }
}

interface Frame {
  readonly flags: number;
  readonly bytes: Uint8Array;
}

function framesOf(body: Uint8Array): readonly Frame[] {
  const frames: Frame[] = [];
  const buffer = Buffer.from(body);
  for (let at = 0; at + 5 <= buffer.length; ) {
    const end = at + 5 + buffer.readUInt32BE(at + 1);
    frames.push({ flags: buffer.readUInt8(at), bytes: buffer.subarray(at + 5, end) });
    at = end;
  }
  return frames;
}

/** The last frame of a stream says how it ended. */
function readStream(input: Input, body: Uint8Array): Answer {
  const frames = framesOf(body);
  const last = frames.find(({ flags }) => (flags & 2) !== 0);
  if (last === undefined) return { kind: "lost", why: "the stream has no end" };
  const end = JSON.parse(Buffer.from(last.bytes).toString()) as { readonly error?: JsonValue };
  if (end.error !== undefined) return refused(errorFromJson(end.error, undefined, UNREADABLE));
  return { kind: "done", messages: frames.filter((one) => one !== last).map(({ bytes }) => decode(input, bytes)) };
}

function done(input: Input, body: Uint8Array): Answer {
  const bodies = input.form.protocol === "grpc" ? framesOf(body).map(({ bytes }) => bytes) : [body];
  return { kind: "done", messages: bodies.map((bytes) => decode(input, bytes)) };
}

function decode({ method, form }: Input, bytes: Uint8Array): JsonValue {
  if (form.codec === "json") return JSON.parse(Buffer.from(bytes).toString()) as JsonValue;
  return toJson(outputOf(method), fromBinary(outputOf(method), bytes));
}

const outputOf = ({ output }: DescMethod): DescMethod["output"] => output;
