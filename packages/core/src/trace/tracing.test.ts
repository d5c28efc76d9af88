import { describe, expect, it } from "@jest/globals";
import { wantsTraces } from "./tracing.ts";

describe("wantsTraces", () => {
  it.each<[boolean, Record<string, string>]>([
    [false, {}],
    [false, { OTEL_SERVICE_NAME: "x", OTEL_METRICS_EXPORTER: "otlp" }],
    [true, { OTEL_TRACES_EXPORTER: "otlp" }],
    [true, { OTEL_TRACES_EXPORTER: "console, otlp" }],
    [false, { OTEL_TRACES_EXPORTER: "console" }],
    [false, { OTEL_TRACES_EXPORTER: "none", OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318" }],
    [true, { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:4318" }],
    [true, { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: "http://127.0.0.1:4318/v1/traces" }],
    [false, { OTEL_TRACES_EXPORTER: "otlp", OTEL_SDK_DISABLED: "true" }],
  ])("is %s for %j", (wanted, env) => {
    expect(wantsTraces(env)).toBe(wanted);
  });
});
