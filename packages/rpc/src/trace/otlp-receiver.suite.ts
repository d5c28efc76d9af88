import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

/** A span as it arrived. */
export interface ReceivedSpan {
  readonly service: string;
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly kind: number;
}

export interface OtlpReceiver extends AsyncDisposable {
  readonly url: string;
  readonly spans: readonly ReceivedSpan[];
}

/** A root says nothing of a parent. */
type SentSpan = Omit<ReceivedSpan, "service" | "parentSpanId"> & { readonly parentSpanId?: string };

interface ExportRequest {
  readonly resourceSpans?: readonly {
    readonly resource?: {
      readonly attributes?: readonly { readonly key: string; readonly value: { stringValue?: string } }[];
    };
    readonly scopeSpans?: readonly { readonly spans?: readonly SentSpan[] }[];
  }[];
}

/** Takes traces as OTLP over HTTP with JSON. */
export async function startOtlpReceiver(): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on("data", (part: Buffer) => parts.push(part));
    request.on("end", () => {
      const body = JSON.parse(Buffer.concat(parts).toString("utf8")) as ExportRequest;
      for (const { resource, scopeSpans = [] } of body.resourceSpans ?? []) {
        const named = resource?.attributes?.find(({ key }) => key === "service.name");
        const service = named?.value.stringValue ?? "";
        for (const span of scopeSpans.flatMap((scope) => scope.spans ?? []))
          spans.push({ ...span, parentSpanId: span.parentSpanId ?? "", service });
      }
      response.writeHead(200, { "content-type": "application/json" }).end("{}");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    spans,
    [Symbol.asyncDispose]: async () => {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    },
  };
}
