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
import {
  contentTypeUnaryProto,
  errorFromJsonBytes,
  requestHeader,
  trailerDemux,
  validateResponseWithCompression,
} from "@connectrpc/connect/protocol-connect";
import { linkSignals } from "@turnbox/core";
import { toHeaders } from "../wire/http2-fields.ts";
import type { ConnectionManager } from "./connection-manager.ts";
import { exchange, type UnaryHttpResponse } from "./unary-exchange.ts";

export interface UnaryCallOptions {
  /** Around every call, outermost first. */
  readonly interceptors: readonly Interceptor[];
  /** Most bytes of one message from the service. */
  readonly readMaxBytes: number;
}

/** Connect's own bound of a message to the service. */
const WRITE_MAX_BYTES = 0xffff_ffff;

/**
 * Unary calls, put together from Connect's own parts. Connect's transport sends the end of a request by itself, reads a
 * response through several layers of promises and makes errors that no caller sees; without that an empty call takes half
 * of the client's processor time.
 */
export function createUnaryCalls(connections: ConnectionManager, options: UnaryCallOptions): Transport["unary"] {
  const baseUrl = connections.authority;
  const send = createSend(connections, options.readMaxBytes);
  const call = options.interceptors.reduceRight((next, around) => around(next as never) as typeof send, send);
  return async (method, signal, timeoutMs, header, input, contextValues) => {
    const limitMs = timeoutMs !== undefined && timeoutMs > 0 ? timeoutMs : undefined;
    const deadline = createDeadlineSignal(limitMs);
    using ends = linkSignals([signal, deadline.signal].filter((one) => one !== undefined));
    try {
      const response = await call({
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
      return response as never;
    } catch (thrown) {
      if (ends.signal.aborted) throw ConnectError.from(getAbortSignalReason(ends.signal), Code.Canceled);
      throw ConnectError.from(thrown);
    } finally {
      deadline.cleanup();
    }
  };
}

/** What is inside of the interceptors: one message out, one message back. */
function createSend(connections: ConnectionManager, maxBytes: number) {
  const limits = { readMaxBytes: maxBytes, writeMaxBytes: WRITE_MAX_BYTES };
  const known = new WeakMap<DescMethod, MethodSerializationLookup<DescMessage, DescMessage>>();
  const serializationOf = (method: DescMethod): MethodSerializationLookup<DescMessage, DescMessage> => {
    const lookup = known.get(method) ?? createMethodSerializationLookup(method, undefined, undefined, limits);
    known.set(method, lookup);
    return lookup;
  };
  return async ({ method, header, url, message, signal }: UnaryRequest): Promise<UnaryResponse> => {
    const serialization = serializationOf(method);
    const body = serialization.getI(true).serialize(message);
    const response = await exchange(connections, { url, header, body, signal }, { maxBytes });
    assertSucceeded(response);
    // Headers are made if they are read, which hardly any caller does.
    let demuxed: readonly [Headers, Headers] | undefined;
    const parts = (): readonly [Headers, Headers] => (demuxed ??= trailerDemux(toHeaders(response.fields)));
    return {
      stream: false,
      service: method.parent,
      method,
      get header() {
        return parts()[0];
      },
      get trailer() {
        return parts()[1];
      },
      message: serialization.getO(true).parse(response.body),
    };
  };
}

/** Throws the failure that a response states, or what is wrong with its form. */
function assertSucceeded({ status, fields, body }: UnaryHttpResponse): void {
  if (status === 200 && fields["content-type"] === contentTypeUnaryProto && fields["content-encoding"] === undefined)
    return;
  const header = toHeaders(fields);
  const { isUnaryError, unaryError } = validateResponseWithCompression("unary", [], true, status, header);
  if (isUnaryError) throw errorFromJsonBytes(body, header, unaryError);
}
