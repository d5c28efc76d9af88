import { describe, expect, it } from "@jest/globals";
import { createManualClock } from "@turnbox/core/testing";
import { openTracing, wantsTraces } from "./open-tracing.ts";
import { NO_TRACING } from "./tracing.ts";

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

describe("openTracing", () => {
  const problems: string[] = [];
  const options = {
    serviceName: "test",
    version: "0",
    env: { OTEL_TRACES_EXPORTER: "otlp" },
    clock: createManualClock(),
    onProblem: (message: string) => void problems.push(message),
  };

  it("says how to get the SDK where it is not installed, and goes on without", async () => {
    const missing = Object.assign(new Error("Cannot find package"), { code: "ERR_MODULE_NOT_FOUND" });
    expect(await openTracing(options, () => Promise.reject(missing))).toBe(NO_TRACING);
    expect(problems).toEqual([expect.stringContaining("npm install @opentelemetry/api @opentelemetry/sdk-node")]);
  });

  it("does not hide what else is wrong with it", async () => {
    await expect(openTracing(options, () => Promise.reject(new Error("broken")))).rejects.toThrow("broken");
  });
});
