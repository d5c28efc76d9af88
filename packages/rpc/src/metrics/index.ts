export {
  CALL_BUCKETS_SECONDS,
  type KeysOf,
  type LabelsOf,
  MACHINE_BUCKETS_SECONDS,
  type MetricSpec,
  type MetricTable,
} from "./metric-table.ts";
export {
  createMetrics,
  type Metrics,
  type MetricsOptions,
  type MetricsPage,
  type ReadGauge,
  type Sample,
} from "./metrics.ts";
export { type Measured, measure } from "./outcome.ts";
export { createRpcMeter, RPC_METRICS, type RpcMeter } from "./rpc-metrics.ts";
