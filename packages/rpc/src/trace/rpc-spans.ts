import {
  type Context,
  context,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer,
} from "@opentelemetry/api";
import { ConnectError, type Interceptor } from "@connectrpc/connect";
import { methodFacts } from "../server/method-facts.ts";
import { codeToString } from "@connectrpc/connect/protocol-connect";

/**
 * Spans of streams that are not read to their end yet. A client that stops reading does not say so, so the owner of the traces
 * ends what is left at last.
 */
export type OpenStreams = Set<Span>;

interface Spanned {
  readonly span: Span;
  readonly inside: Context;
  readonly open: OpenStreams;
}

type Call = Parameters<ReturnType<Interceptor>>[0];

const SET = {
  set: (headers: Headers, key: string, value: string): void => {
    headers.set(key, value);
  },
};
const GET = {
  keys: (headers: Headers): string[] => [...headers.keys()],
  get: (headers: Headers, key: string): string | undefined => headers.get(key) ?? undefined,
};

/** A span for each call that is made inside a trace; what a service does by itself makes none. */
export function createClientInterceptor(tracer: Tracer, open: OpenStreams): Interceptor {
  return (next) => async (call) => {
    if (trace.getActiveSpan() === undefined) return await next(call);
    const span = tracer.startSpan(nameOf(call), { kind: SpanKind.CLIENT, attributes: attributesOf(call) });
    const inside = trace.setSpan(context.active(), span);
    propagation.inject(inside, call.header, SET);
    return await within({ span, inside, open }, () => next(call));
  };
}

/** A span for each call, below the caller's if its headers name one. */
export function createServerInterceptor(tracer: Tracer, open: OpenStreams): Interceptor {
  return (next) => async (call) => {
    const outside = propagation.extract(context.active(), call.header, GET);
    if (trace.getSpan(outside) === undefined && !beginsTrace(call)) return await next(call);
    const span = tracer.startSpan(nameOf(call), { kind: SpanKind.SERVER, attributes: attributesOf(call) }, outside);
    return await within({ span, inside: trace.setSpan(outside, span), open }, () => next(call));
  };
}

/** Services are looked at all day long, by monitoring: a look is worth no trace of its own. */
function beginsTrace({ method }: Call): boolean {
  const { verb } = methodFacts(method);
  return verb !== "read" && verb !== "public";
}

const nameOf = ({ service, method }: Call): string => `${service.typeName}/${method.name}`;

const attributesOf = ({ service, method }: Call) => ({
  "rpc.system": "connect_rpc",
  "rpc.service": service.typeName,
  "rpc.method": method.name,
});

type Answer = Awaited<ReturnType<ReturnType<Interceptor>>>;

/** A call inside its span, which ends with the call's last message. */
async function within(spanned: Spanned, work: () => Promise<Answer>): Promise<Answer> {
  const { span, inside } = spanned;
  try {
    const answer = await context.with(inside, work);
    if (answer.stream) return { ...answer, message: untilEnd(answer.message, spanned) };
    span.end();
    return answer;
  } catch (thrown) {
    noteFailure(span, thrown);
    span.end();
    throw thrown;
  }
}

/** Each message is made inside the span, whatever asks for it. */
async function* untilEnd<T>(messages: AsyncIterable<T>, { span, inside, open }: Spanned): AsyncGenerator<T> {
  open.add(span);
  const iterator = messages[Symbol.asyncIterator]();
  let ended = false;
  try {
    for (;;) {
      const piece = await context.with(inside, () => iterator.next());
      if (piece.done === true) {
        ended = true;
        return;
      }
      yield piece.value;
    }
  } catch (thrown) {
    ended = true;
    noteFailure(span, thrown);
    throw thrown;
  } finally {
    open.delete(span);
    span.end();
    if (!ended) await context.with(inside, async () => await iterator.return?.());
  }
}

function noteFailure(span: Span, thrown: unknown): void {
  const code = codeToString(ConnectError.from(thrown).code);
  span.setAttribute("rpc.connect_rpc.error_code", code);
  span.setStatus({ code: SpanStatusCode.ERROR, message: code });
}
