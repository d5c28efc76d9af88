import { constants } from "node:http2";
import { Code, ConnectError } from "@connectrpc/connect";
import { errnoOf } from "@turnbox/core";

/** The stream is gone; as Connect says it, whose errors the errors of this project are made from. */
const GONE = ["ERR_STREAM_DESTROYED", "ERR_HTTP2_INVALID_STREAM", "ECONNRESET", "ERR_STREAM_WRITE_AFTER_END"];
const UNREACHABLE = ["ETIMEDOUT", "ENOTFOUND", "EAI_AGAIN", "ECONNREFUSED"];

/** What the protocol says of a stream that was reset. */
const RESETS: ReadonlyMap<number, Code> = new Map([
  [constants.NGHTTP2_REFUSED_STREAM, Code.Unavailable],
  [constants.NGHTTP2_CANCEL, Code.Canceled],
  [constants.NGHTTP2_ENHANCE_YOUR_CALM, Code.ResourceExhausted],
  [constants.NGHTTP2_INADEQUATE_SECURITY, Code.PermissionDenied],
  [constants.NGHTTP2_HTTP_1_1_REQUIRED, Code.PermissionDenied],
]);

/** What is wrong with a connection, as an error of Connect that has it as its cause. */
export function toConnectionError(thrown: unknown): ConnectError {
  if (thrown instanceof ConnectError) return thrown;
  const error = ConnectError.from(thrown, codeOf(errnoOf(thrown)));
  if (error !== thrown) error.cause = thrown;
  return error;
}

function codeOf(errno: string | undefined): Code {
  if (errno !== undefined && GONE.includes(errno)) return Code.Aborted;
  return errno !== undefined && UNREACHABLE.includes(errno) ? Code.Unavailable : Code.Internal;
}

/** The error of a reset that says something a caller can act on; undefined for any other. */
export function resetError(resetCode: number | undefined, cause?: Error): ConnectError | undefined {
  const code = RESETS.get(resetCode ?? constants.NGHTTP2_NO_ERROR);
  if (code === undefined) return undefined;
  return new ConnectError(`the stream was reset (HTTP/2 code ${resetCode})`, code, undefined, undefined, cause);
}

/** The error of a response that has no end. */
export function incompleteError(): ConnectError {
  const cause = Object.assign(new Error("the stream was closed before its end"), {
    code: "ERR_STREAM_PREMATURE_CLOSE",
  });
  return new ConnectError(cause.message, Code.Internal, undefined, undefined, cause);
}
