import { ConnectError, type Transport } from "@connectrpc/connect";
import { type Admitted, errnoOf, hasReason, isNeverSent, SandboxError } from "@turnbox/core";
import { fromConnectError } from "@turnbox/rpc/wire";

/** Who is at the other end of a connection; it decides the reason of a connection that fails. */
export type Peer = "server" | "host";

/** The connection broke: the request may have arrived. */
const BROKEN = [
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "ERR_HTTP2_STREAM_CANCEL",
  "ERR_HTTP2_STREAM_ERROR",
  "ERR_HTTP2_SESSION_ERROR",
  "ERR_HTTP2_ERROR",
  "ERR_HTTP2_GOAWAY_SESSION",
  "ERR_STREAM_PREMATURE_CLOSE",
];

/** A transport whose calls and streams fail with `SandboxError` only. `url` is named in messages. */
export function withSandboxErrors(
  inner: Transport,
  { peer, url }: { readonly peer: Peer; readonly url: string },
): Transport {
  const translate = (thrown: unknown, signal: AbortSignal | undefined): SandboxError =>
    toSandboxError(thrown, { peer, url, signal });
  return {
    unary: async (method, signal, timeoutMs, header, input, contextValues) => {
      try {
        return await inner.unary(method, signal, timeoutMs, header, input, contextValues);
      } catch (thrown) {
        throw translate(thrown, signal);
      }
    },
    stream: async (method, signal, timeoutMs, header, input, contextValues) => {
      try {
        const response = await inner.stream(method, signal, timeoutMs, header, input, contextValues);
        return { ...response, message: translated(response.message, (thrown) => translate(thrown, signal)) };
      } catch (thrown) {
        throw translate(thrown, signal);
      }
    },
  };
}

async function* translated<T>(
  messages: AsyncIterable<T>,
  translate: (thrown: unknown) => SandboxError,
): AsyncIterable<T> {
  try {
    yield* messages;
  } catch (thrown) {
    throw translate(thrown);
  }
}

function toSandboxError(
  thrown: unknown,
  { peer, url, signal }: { readonly peer: Peer; readonly url: string; readonly signal: AbortSignal | undefined },
): SandboxError {
  // The caller's own signal explains the failure better than whatever the broken stream says.
  if (signal?.aborted === true) {
    const own = SandboxError.from(signal.reason);
    return hasReason(own, "INTERNAL")
      ? new SandboxError("CANCELLED", "the call was cancelled", { cause: thrown })
      : own;
  }
  const error = fromConnectError(thrown);
  // Whoever sends a detail answered.
  if (!(thrown instanceof ConnectError) || thrown.details.length > 0) return error;
  const failure = connectionFailure(error, errnoOf(thrown));
  if (failure === undefined) return error;
  const words =
    failure.admitted === "no" ? `no ${peer} answers at ${url}` : `the connection to the ${peer} at ${url} broke`;
  return new SandboxError(peer === "server" ? "SERVER_UNREACHABLE" : "HOST_UNREACHABLE", `${words} (${failure.why})`, {
    cause: thrown,
    admitted: failure.admitted,
    metadata: { url },
  });
}

/** What is wrong with the connection, or undefined if the failure is not about it. */
function connectionFailure(
  error: SandboxError,
  errno: string | undefined,
): { readonly admitted: Admitted; readonly why: string } | undefined {
  if (errno !== undefined && isNeverSent(errno)) return { admitted: "no", why: errno };
  if (errno !== undefined && BROKEN.includes(errno)) return { admitted: "unknown", why: errno };
  // A call that the caller did not cancel is "cancelled" when its connection goes away under it.
  return hasReason(error, "HOST_UNREACHABLE", "CANCELLED") ? { admitted: "unknown", why: error.message } : undefined;
}
