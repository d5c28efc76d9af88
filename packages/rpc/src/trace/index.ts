export { openTracing, wantsTraces } from "./open-tracing.ts";
export { NO_TRACING, type SpanStart, type Tracing, type TracingOptions } from "./tracing.ts";
