import type { DescMethod } from "@bufbuild/protobuf";
import { type ConnectRouter, createConnectRouter, createContextValues } from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { SandboxError } from "@turnbox/core";
import { toConnectError } from "../wire/connect-error.ts";
import { setClosingSignal, setPeer } from "./call-context.ts";
import { completeError } from "./complete-error.ts";
import type { HttpHandler, HttpRequest, HttpResponse } from "./http-handler.ts";
import { LargeTurns } from "./intake/large-turns.ts";
import { takeIn } from "./intake/take-in.ts";
import { type BodyGuard, type BodyLimits, DEFAULT_BODY_LIMITS, readBody } from "./read-body.ts";
import { createRouterOptions, DEFAULT_MAX_MESSAGE_BYTES, type ServerPolicy } from "./router-options.ts";
import { addressOf, bodySourceOf, toRequestHead } from "./universal-request.ts";
import { answerUnknownPath } from "./unknown-path.ts";
import { isGone, writeResponse } from "./write-response.ts";

export interface RpcHandlerOptions extends ServerPolicy {
  readonly routes: (router: ConnectRouter) => void;
  readonly body?: BodyLimits;
  /** How long the reader of an answer may take nothing. Default 10 min. */
  readonly stalledReaderMs?: number;
}

const DEFAULT_STALLED_READER_MS = 10 * 60_000;

/** How long the body of a request may still take to arrive once the server begins to close. */
const LAST_BODY_MS = 200;

/**
 * Serves the routes over HTTP/1.1 and HTTP/2 to Connect and gRPC clients, behind the gate and interceptors of the policy.
 *
 * It takes the place of Connect's own Node adapter, which throws out of the server's request event on a malformed Host
 * header, sets no limit to slow bodies, and can wait for ever on a reader that went away.
 */
export function createRpcHandler(options: RpcHandlerOptions): HttpHandler {
  const { body = DEFAULT_BODY_LIMITS, stalledReaderMs = DEFAULT_STALLED_READER_MS } = options;
  const intake = { turns: new LargeTurns(), maxMessageBytes: options.maxMessageBytes ?? DEFAULT_MAX_MESSAGE_BYTES };
  const router = createConnectRouter(createRouterOptions(options));
  options.routes(router);
  const handlers = new Map<string, UniversalHandler>(router.handlers.map((handler) => [handler.requestPath, handler]));

  const closing = new AbortController();
  const lastBody = new AbortController();

  const answer = async (handler: UniversalHandler, request: HttpRequest, response: HttpResponse): Promise<void> => {
    // A stream that was reset as soon as it was opened costs nothing further.
    if (isGone(response)) return;
    const head = toRequestHead(request, response);
    if (head === undefined) {
      response.writeHead(400);
      response.end();
      return;
    }
    const values = createContextValues();
    setClosingSignal({ values }, closing.signal);
    setPeer({ values }, () => addressOf(request));
    const guard = guardOf(handler.method, { caller: head.signal, lastBody: lastBody.signal }, body);
    const arriving = { method: handler.method, header: head.header, values, caller: head.signal };
    using pieces = readBody(bodySourceOf(request), guard);
    const asked = { ...head, body: takeIn({ ...arriving, body: pieces }, intake), contextValues: values };
    const result = await completeError(await handler(asked));
    await writeResponse(result, response, { request, stalledReaderMs, closing: closing.signal });
  };

  const handle = (request: HttpRequest, response: HttpResponse): void => {
    const path = (request.url ?? "").split("?", 1)[0] ?? "";
    const handler = handlers.get(path);
    if (handler === undefined) {
      answerUnknownPath(request, response);
      return;
    }
    answer(handler, request, response).catch((thrown: unknown) => {
      options.log.error({ err: thrown, path }, "answer failed");
      response.destroy();
    });
  };

  const drain = (): void => {
    if (closing.signal.aborted) return;
    const reason = new SandboxError("SHUTTING_DOWN", "the server is stopping");
    closing.abort(reason);
    setTimeout(() => {
      // Thrown in the protocol layer, which knows errors of its own kind only.
      lastBody.abort(toConnectError(reason, ""));
    }, LAST_BODY_MS).unref();
  };
  return Object.assign(handle, { drain });
}

/**
 * A single message has to arrive as a whole, since no handler sees the call before; a stream of them only has to go on; a
 * dialogue may be silent.
 */
function guardOf(method: DescMethod, signals: BodySignals, { idleMs, wholeMs }: BodyLimits): BodyGuard {
  switch (method.methodKind) {
    case "bidi_streaming":
      return { signals: [signals.caller] };
    case "client_streaming":
      return { idleMs, signals: [signals.caller] };
    case "unary":
    case "server_streaming":
      return { idleMs, wholeMs, signals: [signals.caller, signals.lastBody] };
  }
}

interface BodySignals {
  readonly caller: AbortSignal;
  readonly lastBody: AbortSignal;
}
