import { create, type DescMessage, type DescMethod } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  createContextValues,
  type Interceptor,
  type Transport,
  type UnaryRequest,
  type UnaryResponse,
} from "@connectrpc/connect";
import {
  createDeadlineSignal,
  createMethodSerializationLookup,
  createMethodUrl,
  getAbortSignalReason,
  type MethodSerializationLookup,
} from "@connectrpc/connect/protocol";
import { requestHeader } from "@connectrpc/connect/protocol-connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { linkSignals } from "@turnbox/core";
import { AnswerHead, assertAnswered } from "./answer-head.ts";
import type { Http2Lines } from "./http2-lines.ts";
import { sendWhole } from "./send-whole.ts";

export interface LineTransportOptions {
  /** Around every call, outermost first. */
  readonly interceptors: readonly Interceptor[];
  /** Most bytes of one message from the service. */
  readonly readMaxBytes: number;
  /** Most bytes of one message to the service. Default 4 GiB, Connect's own. */
  readonly writeMaxBytes?: number;
}

const NO_LIMIT_BYTES = 0xffff_ffff;

/**
 * Connect's transport over the connections to one service. Nothing is compressed: most services are on this machine, where
 * packing costs more than it saves, and tool output would wait for it.
 *
 * Streams go Connect's own way. Unary calls, which are most, are put together here from its parts: its own way sends the end of
 * a request by itself when what comes before it has left, reads an answer through several layers of promises, and makes errors
 * that nobody sees; together a fifth of an empty call.
 */
export function createLineTransport(lines: Http2Lines, options: LineTransportOptions): Transport {
  const { interceptors, readMaxBytes, writeMaxBytes = NO_LIMIT_BYTES } = options;
  const baseUrl = lines.authority;
  const limits = { readMaxBytes, writeMaxBytes };
  const { stream } = createConnectTransport({
    ...limits,
    baseUrl,
    httpVersion: "2",
    sessionManager: lines,
    interceptors: [...interceptors],
    acceptCompression: [],
  });

  const known = new WeakMap<DescMethod, MethodSerializationLookup<DescMessage, DescMessage>>();
  const formsOf = (method: DescMethod): MethodSerializationLookup<DescMessage, DescMessage> => {
    const forms = known.get(method) ?? createMethodSerializationLookup(method, undefined, undefined, limits);
    known.set(method, forms);
    return forms;
  };

  const send = async (request: UnaryRequest): Promise<UnaryResponse> => {
    const { method, header, url, message, signal } = request;
    const forms = formsOf(method);
    const body = forms.getI(true).serialize(message);
    const answer = await sendWhole(lines, { url, header, body, signal }, { maxBytes: readMaxBytes });
    assertAnswered(answer);
    const head = new AnswerHead(answer);
    return {
      stream: false,
      service: method.parent,
      method,
      get header() {
        return head.header;
      },
      get trailer() {
        return head.trailer;
      },
      message: forms.getO(true).parse(answer.body),
    };
  };
  const call = interceptors.reduceRight((next, around) => around(next as never) as typeof send, send);

  const unary: Transport["unary"] = async (method, signal, timeoutMs, header, input, contextValues) => {
    const limitMs = timeoutMs !== undefined && timeoutMs > 0 ? timeoutMs : undefined;
    const deadline = createDeadlineSignal(limitMs);
    using ends = linkSignals([signal, deadline.signal].filter((one) => one !== undefined));
    try {
      const answer = await call({
        stream: false,
        service: method.parent,
        method,
        requestMethod: "POST",
        url: createMethodUrl(baseUrl, method),
        signal: ends.signal,
        header: requestHeader("unary", true, limitMs, header, true),
        contextValues: contextValues ?? createContextValues(),
        message: create(method.input, input),
      });
      return answer as never;
    } catch (thrown) {
      if (ends.signal.aborted) throw ConnectError.from(getAbortSignalReason(ends.signal), Code.Canceled);
      throw ConnectError.from(thrown);
    } finally {
      deadline.cleanup();
    }
  };
  return { unary, stream };
}
