import { hasErrno } from "@turnbox/core";
import { NO_TRACING, type Tracing, type TracingOptions } from "./tracing.ts";

/**
 * Whether the environment asks for traces: by an exporter that is `otlp`, or by an endpoint. Nothing is loaded otherwise.
 * The exporter `console` is not one: standard output belongs to results and to the ready line.
 */
export function wantsTraces(env: TracingOptions["env"]): boolean {
  const value = (name: string): string => (env[name] ?? "").trim();
  if (value("OTEL_SDK_DISABLED").toLowerCase() === "true") return false;
  const exporters = value("OTEL_TRACES_EXPORTER");
  if (exporters !== "") return exporters.split(",").some((name) => name.trim() === "otlp");
  return value("OTEL_EXPORTER_OTLP_ENDPOINT") !== "" || value("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT") !== "";
}

const loadKit = () => import("./otel-tracing.ts");

/**
 * Traces if the environment asks for them; the SDK is loaded then and not before. What bundles this may leave the
 * SDK out: that it is missing is a problem to report, and the program goes on without traces.
 */
export async function openTracing(options: TracingOptions, load: typeof loadKit = loadKit): Promise<Tracing> {
  if (!wantsTraces(options.env)) return NO_TRACING;
  try {
    const { startOtelTracing } = await load();
    return startOtelTracing(options);
  } catch (thrown) {
    if (!hasErrno(thrown, "ERR_MODULE_NOT_FOUND")) throw thrown;
    options.onProblem("there are none without OpenTelemetry: npm install @opentelemetry/api @opentelemetry/sdk-node");
    return NO_TRACING;
  }
}
