import type { Interceptor } from "@connectrpc/connect";
import type { Clock } from "../clock/clock.ts";
import { hasErrno } from "../file/errno.ts";
import type { Around } from "../object/around-methods.ts";

/** What a span is about. Attributes hold no secrets and no contents. */
export interface SpanStart {
  readonly name: string;
  readonly attributes?: Readonly<Record<string, string | number | boolean>>;
}

/** The traces of a program. Disposing it sends what is not sent yet, within a deadline. */
export interface Tracing extends AsyncDisposable {
  readonly state: "on" | "off";
  /** For clients: a span for each call inside a trace, and its context in the call's headers. */
  readonly client: Interceptor;
  /**
   * For servers: a span for each call, below the one that its headers name. Without one, a call that only reads begins no
   * trace.
   */
  readonly server: Interceptor;
  /** Does the work inside a span, which ends with it; a failure is the span's too. */
  span<T>(start: SpanStart, work: () => Promise<T>): Promise<T>;
  /** Spans for the methods of a port, called `<what>.<method>`, where there is a trace to add them to. */
  around(what: string): Around;
}

export interface TracingOptions {
  /** What this program is in a trace. */
  readonly serviceName: string;
  readonly version: string;
  /** The standard variables of OpenTelemetry decide. */
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly clock: Clock;
  /** Told what is wrong with the sending of traces. */
  readonly onProblem: (message: string) => void;
}

const passOn: Interceptor = (next) => next;

/** Traces nothing, and costs nothing. */
export const NO_TRACING: Tracing = {
  state: "off",
  client: passOn,
  server: passOn,
  span: (_, work) => work(),
  around: () => (_, work) => work(),
  [Symbol.asyncDispose]: () => Promise.resolve(),
};

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
 * Traces where the environment asks for them; the SDK is loaded then and not before. Whoever bundles this may leave the
 * SDK out: that it is missing is a problem to tell of, and the program goes on without traces.
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
