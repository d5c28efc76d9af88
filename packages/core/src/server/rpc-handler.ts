import type { DescMethod } from "@bufbuild/protobuf";
import { type ConnectRouter, createConnectRouter, createContextValues } from "@connectrpc/connect";
import type { UniversalHandler, UniversalServerRequest } from "@connectrpc/connect/protocol";
import { universalRequestFromNodeRequest } from "@connectrpc/connect-node";
import { SandboxError } from "../error/sandbox-error.ts";
import { toConnectError } from "../error/wire.ts";
import { setClosingSignal } from "./call-context.ts";
import { completeError } from "./complete-error.ts";
import type { HttpHandler, HttpRequest, HttpResponse } from "./http-handler.ts";
import { type BodyLimits, DEFAULT_BODY_LIMITS, limitBody } from "./limit-body.ts";
import { createRouterOptions, type ServerPolicy } from "./router-options.ts";
import { answerUnknownPath } from "./unknown-path.ts";
import { expectWireForms } from "./wire-form.ts";
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

/** The longest timer of Node; what is longer would fire at once. */
const MAX_TIMEOUT_MS = 2 ** 31 - 1;

/**
 * Serves the routes over HTTP/1.1 and HTTP/2 to Connect and gRPC clients, behind the gate and interceptors of the policy.
 *
 * It takes the place of Connect's own Node adapter, which throws out of the server's request event on a malformed Host
 * header, sets no limit to slow bodies, and can wait for ever on a reader that went away.
 */
export function createRpcHandler(options: RpcHandlerOptions): HttpHandler {
  const { body = DEFAULT_BODY_LIMITS, stalledReaderMs = DEFAULT_STALLED_READER_MS } = options;
  const router = createConnectRouter(createRouterOptions(options));
  options.routes(router);
  const handlers = new Map<string, UniversalHandler>(router.handlers.map((handler) => [handler.requestPath, handler]));

  const closing = new AbortController();
  const lastBody = new AbortController();

  const answer = async (handler: UniversalHandler, request: HttpRequest, response: HttpResponse): Promise<void> => {
    // A stream that was reset as soon as it was opened costs nothing further.
    if (isGone(response)) return;
    const universal = toUniversal(request, response);
    if (universal === undefined) {
      response.writeHead(400);
      response.end();
      return;
    }
    const values = createContextValues();
    setClosingSignal({ values }, closing.signal);
    const forms = expectWireForms(values, handler.method, universal.header);
    const limited = limitBodyOf(handler.method, universal, { ...body, lastBody: lastBody.signal });
    const result = await completeError(await handler({ ...universal, body: limited, contextValues: values }));
    await writeResponse(result, response, { request, stalledReaderMs, closing: closing.signal, forms });
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

/** The request in Connect's form, or undefined where its Host header or path make no URL. */
function toUniversal(request: HttpRequest, response: HttpResponse): UniversalServerRequest | undefined {
  try {
    const universal = universalRequestFromNodeRequest(request, response, undefined, undefined);
    clampTimeout(universal.header);
    return universal;
  } catch {
    return undefined;
  }
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

/**
 * A single message has to arrive as a whole, since no handler sees the call before; a stream of them only has to go on; a
 * dialogue may be silent.
 */
function limitBodyOf(
  method: DescMethod,
  { body, signal }: UniversalServerRequest,
  { idleMs, wholeMs, lastBody }: BodyLimits & { readonly lastBody: AbortSignal },
): UniversalServerRequest["body"] {
  if (method.methodKind === "bidi_streaming" || !isByteStream(body)) return body;
  if (method.methodKind === "client_streaming") return limitBody(body, { idleMs, signals: [signal] });
  return limitBody(body, { idleMs, wholeMs, signals: [signal, lastBody] });
}

function isByteStream(body: UniversalServerRequest["body"]): body is AsyncIterable<Uint8Array> {
  return typeof body === "object" && body !== null && Symbol.asyncIterator in body;
}
