import type { DescMethod } from "@bufbuild/protobuf";
import type { Clock } from "@turnbox/core";
import { CALL_BUCKETS_SECONDS, type MetricTable } from "./metric-table.ts";
import type { Metrics } from "./metrics.ts";

/** What every service records about its calls. */
export const RPC_METRICS = {
  rpcRequests: {
    kind: "counter",
    name: "turnbox_rpc_requests_total",
    help: "Calls that have ended, by method and Connect code; ok is success.",
    labels: ["method", "code"],
  },
  rpcSeconds: {
    kind: "histogram",
    name: "turnbox_rpc_duration_seconds",
    help: "How long unary calls took, by method.",
    labels: ["method"],
    bucketsSeconds: CALL_BUCKETS_SECONDS,
  },
  rpcInFlight: {
    kind: "gauge",
    name: "turnbox_rpc_in_flight",
    help: "Calls under way, by kind: unary or stream.",
    labels: ["kind"],
  },
} as const satisfies MetricTable;

/** Told of each call of a server. */
export interface RpcMeter {
  /** A call has reached its handler; the returned function takes its code when it has ended. */
  begin(method: DescMethod): (code: string) => void;
  /** A call was turned away on the strength of its headers. */
  refuse(method: DescMethod, code: string): void;
}

export function createRpcMeter(metrics: Metrics<typeof RPC_METRICS>, clock: Clock): RpcMeter {
  const inFlight = { unary: 0, stream: 0 };
  metrics.collect("rpcInFlight", () => [
    { labels: { kind: "unary" }, value: inFlight.unary },
    { labels: { kind: "stream" }, value: inFlight.stream },
  ]);
  return {
    begin: (method) => {
      const kind = method.methodKind === "unary" ? "unary" : "stream";
      const name = nameOf(method);
      const startedMs = clock.monotonicMs();
      inFlight[kind] += 1;
      return (code) => {
        inFlight[kind] -= 1;
        metrics.add("rpcRequests", { method: name, code });
        if (kind === "unary") metrics.observe("rpcSeconds", { method: name }, (clock.monotonicMs() - startedMs) / 1000);
      };
    },
    refuse: (method, code) => {
      metrics.add("rpcRequests", { method: nameOf(method), code });
    },
  };
}

const nameOf = ({ parent, name }: DescMethod): string => `${parent.typeName}/${name}`;
