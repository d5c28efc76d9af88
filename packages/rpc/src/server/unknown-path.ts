import { errorToJsonBytes } from "@connectrpc/connect/protocol-connect";
import { setTrailerStatus } from "@connectrpc/connect/protocol-grpc";
import { SandboxError } from "@turnbox/core";
import { toFailure } from "./failure.ts";
import type { HttpHandler } from "./http-handler.ts";
import { REQUEST_ID_HEADER, requestIdFrom } from "./request-id.ts";

/** Answers calls of methods that are not served with `UNIMPLEMENTED`, in the form of their protocol. */
export const answerUnknownPath: HttpHandler = (request, response) => {
  const requestId = requestIdFrom(String(request.headers[REQUEST_ID_HEADER] ?? ""));
  const { answer } = toFailure(new SandboxError("UNIMPLEMENTED", "there is no such method"), requestId);
  const headers = new Headers({ [REQUEST_ID_HEADER]: requestId });
  if (!("stream" in response)) headers.set("connection", "close");
  if (request.headers["content-type"]?.startsWith("application/grpc") === true) {
    headers.set("content-type", "application/grpc");
    setTrailerStatus(headers, answer);
    response.writeHead(200, Object.fromEntries(headers));
    response.end();
    return;
  }
  headers.set("content-type", "application/json");
  response.writeHead(404, Object.fromEntries(headers));
  response.write(errorToJsonBytes(answer, undefined));
  response.end();
};
