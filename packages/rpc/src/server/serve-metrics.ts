import type { MetricsPage } from "../metrics/metrics.ts";
import { authorizeMethod, type MethodFacts, parseBearer, SandboxError, type TokenVerifier } from "@turnbox/core";
import type { HttpHandler, HttpRequest, HttpResponse } from "./http-handler.ts";
import { isGone } from "./write-response.ts";

export interface MetricsRoute {
  readonly verifier: TokenVerifier;
  readonly render: () => Promise<MetricsPage>;
}

const PATH = "/metrics";
/** What the numbers of a service are: something of the host as a whole that is read. */
const FACTS: MethodFacts = { verb: "read", lane: "normal", scope: "host" };

/**
 * `GET /metrics` in front of a handler, for callers with a token that may read the host: the home's, or the fleet's own.
 * Numbers of all tenants are in it, so there is no way in without one.
 */
export function serveMetrics(inner: HttpHandler, { verifier, render }: MetricsRoute): HttpHandler {
  const handle = (request: HttpRequest, response: HttpResponse): void => {
    if ((request.url ?? "").split("?", 1)[0] !== PATH) {
      inner(request, response);
      return;
    }
    request.resume();
    answer(request)
      .then((written) => {
        write(response, written);
      })
      .catch(() => {
        response.destroy();
      });
  };

  const answer = async (request: HttpRequest): Promise<Answer> => {
    if (request.method !== "GET") return { status: 405, headers: { allow: "GET" }, text: "only GET\n" };
    try {
      authorizeMethod(verifier.verify(parseBearer(request.headers.authorization)), FACTS);
    } catch (thrown) {
      const { reason, message } = SandboxError.from(thrown);
      const text = `${reason}: ${message}\n`;
      return reason === "UNAUTHENTICATED"
        ? { status: 401, headers: { "www-authenticate": "Bearer" }, text }
        : { status: 403, headers: {}, text };
    }
    const { contentType, text } = await render();
    return { status: 200, headers: { "content-type": contentType }, text };
  };
  return Object.assign(handle, inner.drain === undefined ? {} : { drain: inner.drain });
}

interface Answer {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly text: string;
}

function write(response: HttpResponse, { status, headers, text }: Answer): void {
  if (isGone(response)) return;
  response.writeHead(status, { "content-type": "text/plain; charset=utf-8", "cache-control": "no-store", ...headers });
  response.write(Buffer.from(text));
  response.end();
}
