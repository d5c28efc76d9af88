import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";

/** A request as either of Node's HTTP servers gives it. */
export type HttpRequest = IncomingMessage | Http2ServerRequest;

/** A response as either of Node's HTTP servers takes it. */
export type HttpResponse = (ServerResponse | Http2ServerResponse) & {
  writeHead(status: number, headers?: OutgoingHttpHeaders): unknown;
  write(chunk: Uint8Array): boolean;
  end(): unknown;
};

/** Answers requests of both HTTP versions. It never throws. */
export interface HttpHandler {
  (request: HttpRequest, response: HttpResponse): void;
  /** Told when the server begins to close: what would not end by itself, and is no work under way, ends soon. */
  drain?(): void;
}

/** A handler, and how many of its answers are not written yet. */
export interface CountedHandler {
  readonly handler: HttpHandler;
  readonly inFlight: number;
}

/** Counts a call until its answer is on its way or its reader has gone; what its peer does then is not waited for. */
export function countCalls(inner: HttpHandler): CountedHandler {
  let inFlight = 0;
  const handler: HttpHandler = (request, response) => {
    inFlight += 1;
    let ended = false;
    const end = (): void => {
      if (!ended) inFlight -= 1;
      ended = true;
    };
    // The response of an HTTP/2 stream reports its finish only when the peer has ended its side as well.
    const written = "stream" in response ? response.stream : response;
    written.once("finish", end);
    written.once("close", end);
    inner(request, response);
  };
  return {
    handler,
    get inFlight() {
      return inFlight;
    },
  };
}
