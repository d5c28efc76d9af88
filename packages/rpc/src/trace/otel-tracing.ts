import { diag, DiagLogLevel, SpanStatusCode, trace, type Tracer } from "@opentelemetry/api";
import { NodeSDK } from "@opentelemetry/sdk-node";
import { raceTime, SandboxError } from "@turnbox/core";
import { createClientInterceptor, createServerInterceptor, type OpenStreams } from "./rpc-spans.ts";
import type { SpanStart, Tracing, TracingOptions } from "./tracing.ts";

/** How long a stop waits for spans to be sent. */
const FLUSH_MS = 3000;

/** Starts the SDK, which reads its own variables, for traces alone. One for each process: it registers itself globally. */
export function startOtelTracing({ serviceName, version, clock, onProblem }: TracingOptions): Tracing {
  // Its own logger would write to standard output.
  const logger = { error: onProblem, warn: onProblem, info: ignore, debug: ignore, verbose: ignore };
  const sdk = new NodeSDK({
    serviceName,
    metricReaders: [],
    logRecordProcessors: [],
    instrumentations: [],
  });
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
  sdk.start();
  const tracer = trace.getTracer("turnbox", version);
  const span = createSpan(tracer);
  const open: OpenStreams = new Set();
  return {
    state: "on",
    client: createClientInterceptor(tracer, open),
    server: createServerInterceptor(tracer, open),
    span,
    around: (what) => (method, work) =>
      trace.getActiveSpan() === undefined ? work() : span({ name: `${what}.${method}` }, work),
    [Symbol.asyncDispose]: async () => {
      for (const left of open) left.end();
      open.clear();
      const flushed = sdk.shutdown().catch((thrown: unknown) => {
        onProblem(thrown instanceof Error ? thrown.message : String(thrown));
      });
      const end = await raceTime(flushed, { clock, atMostMs: FLUSH_MS });
      if (end === "goes_on") onProblem("traces could not be sent in time");
    },
  };
}

const ignore = (): void => undefined;

function createSpan(tracer: Tracer): Tracing["span"] {
  return async <T>({ name, attributes = {} }: SpanStart, work: () => Promise<T>): Promise<T> =>
    await tracer.startActiveSpan(name, { attributes: { ...attributes } }, async (span) => {
      try {
        return await work();
      } catch (thrown) {
        const { reason } = SandboxError.from(thrown);
        span.setStatus({ code: SpanStatusCode.ERROR, message: reason });
        throw thrown;
      } finally {
        span.end();
      }
    });
}
