import type { Http2ServerRequest } from "node:http2";
import type { Readable } from "node:stream";
import { Code, ConnectError } from "@connectrpc/connect";
import type { UniversalServerRequest } from "@connectrpc/connect/protocol";
import { universalRequestFromNodeRequest } from "@connectrpc/connect-node";
import { toHeaders } from "../wire/http2-fields.ts";
import type { HttpRequest, HttpResponse } from "./http-handler.ts";

/** A request without its body. */
export type RequestHead = Omit<UniversalServerRequest, "body">;

/** One for all: a reason of its own would be made, with its stack, at the end of each call. */
const LEFT = new ConnectError("the caller has left", Code.Canceled);

/** The longest timer of Node; what is longer would fire at once. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/** The request in Connect's form, or undefined if its Host header or path make no URL. */
export function toRequestHead(request: HttpRequest, response: HttpResponse): RequestHead | undefined {
  try {
    const head =
      "stream" in request ? ofHttp2(request) : universalRequestFromNodeRequest(request, response, undefined, undefined);
    clampTimeout(head.header);
    return head;
  } catch {
    return undefined;
  }
}

/** Where the bytes of a request's body come from. Node's request over HTTP/2 only hands on what its stream reads. */
export function bodySourceOf(request: HttpRequest): Readable {
  return "stream" in request ? request.stream : request;
}

/** The address that a request came from; empty if its connection is gone. */
export function addressOf(request: HttpRequest): string {
  const socket = "stream" in request ? request.stream.session?.socket : request.socket;
  return socket?.remoteAddress ?? "";
}

function ofHttp2(request: Http2ServerRequest): RequestHead {
  const { stream, method, url, scheme, authority } = request;
  const caller = new AbortController();
  stream.once("close", () => {
    caller.abort(LEFT);
  });
  return {
    httpVersion: request.httpVersion,
    method,
    url: new URL(url, `${scheme}://${authority}`).toString(),
    header: toHeaders(request.headers),
    signal: caller.signal,
  };
}

function clampTimeout(header: Headers): void {
  const timeoutMs = header.get("connect-timeout-ms");
  if (timeoutMs !== null && /^\d{1,10}$/.test(timeoutMs) && Number(timeoutMs) > MAX_TIMEOUT_MS) {
    header.set("connect-timeout-ms", String(MAX_TIMEOUT_MS));
  }
  const grpcTimeout = /^(\d{1,8})([HMS])$/.exec(header.get("grpc-timeout") ?? "");
  const unitMs = { H: 3_600_000, M: 60_000, S: 1000 }[grpcTimeout?.[2] ?? ""];
  if (unitMs !== undefined && Number(grpcTimeout?.[1]) * unitMs > MAX_TIMEOUT_MS) {
    header.set("grpc-timeout", `${Math.floor(MAX_TIMEOUT_MS / 1000)}S`);
  }
}
