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
