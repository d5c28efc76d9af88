import type { Interceptor } from "@connectrpc/connect";
import type { Around, Clock } from "@turnbox/core";

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
  /** Spans for the methods of a port, called `<what>.<method>`, if there is a trace to add them to. */
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
