export { NO_TRACING, openTracing, type SpanStart, type Tracing, type TracingOptions, wantsTraces } from "./tracing.ts";
