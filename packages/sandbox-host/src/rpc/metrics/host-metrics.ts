import { CALL_BUCKETS_SECONDS, type Metrics, type MetricTable, RPC_METRICS } from "@turnbox/rpc/metrics";

/** Everything that a host shows at `/metrics`, besides what its process is like. docs/OPERATIONS.md lists the same. */
export const HOST_METRICS = {
  ...RPC_METRICS,
  sessions: {
    kind: "gauge",
    name: "turnbox_host_sessions",
    help: "Sessions, by state.",
    labels: ["state"],
  },
  maxSessions: {
    kind: "gauge",
    name: "turnbox_host_max_sessions",
    help: "Most sessions at once; 0 means no limit.",
    labels: [],
  },
  warmSessions: {
    kind: "gauge",
    name: "turnbox_host_warm_sessions",
    help: "Warm sessions, for creates to come.",
    labels: [],
  },
  warmCreates: {
    kind: "gauge",
    name: "turnbox_host_warm_creates",
    help: "Creates since the start, by whether a warm session was taken: hit or miss.",
    labels: ["outcome"],
  },
  activeTools: {
    kind: "gauge",
    name: "turnbox_host_active_tools",
    help: "Tool calls that run.",
    labels: [],
  },
  poolBytes: {
    kind: "gauge",
    name: "turnbox_host_pool_bytes",
    help: "Space of the pool, by kind: size, used or available.",
    labels: ["kind"],
  },
  health: {
    kind: "gauge",
    name: "turnbox_host_health",
    help: "1 for the grade that the host gives itself: healthy, degraded or unhealthy; 0 for the others.",
    labels: ["grade"],
  },
  removals: {
    kind: "gauge",
    name: "turnbox_host_background_destroys",
    help: "Destroyed sessions whose removal is not complete.",
    labels: [],
  },
  husks: {
    kind: "gauge",
    name: "turnbox_host_husks",
    help: "Destroyed sessions whose files forks depend on.",
    labels: [],
  },
  workers: {
    kind: "gauge",
    name: "turnbox_host_file_workers",
    help: "File workers by lane and state: idle, busy, or left (killed and not gone).",
    labels: ["lane", "state"],
  },
  workerQueue: {
    kind: "gauge",
    name: "turnbox_host_file_queue_depth",
    help: "File operations that wait for a worker, by lane.",
    labels: ["lane"],
  },
  recordQueue: {
    kind: "gauge",
    name: "turnbox_host_record_queue_depth",
    help: "Changes and queries that the database thread has not finished.",
    labels: [],
  },
  toolCalls: {
    kind: "counter",
    name: "turnbox_host_tool_calls_total",
    help: "Tool calls that have ended, by tool and outcome: ok, error, replayed, how it was ended, or the reason of a refusal.",
    labels: ["tool", "outcome"],
  },
  toolSeconds: {
    kind: "histogram",
    name: "turnbox_host_tool_duration_seconds",
    help: "How long tool calls took that ran, by tool.",
    labels: ["tool"],
    bucketsSeconds: CALL_BUCKETS_SECONDS,
  },
  operations: {
    kind: "counter",
    name: "turnbox_host_operations_total",
    help: "Operations on sessions that have ended, by operation and outcome: ok, or the reason of the failure.",
    labels: ["operation", "outcome"],
  },
  operationSeconds: {
    kind: "histogram",
    name: "turnbox_host_operation_duration_seconds",
    help: "How long operations on sessions took, by operation.",
    labels: ["operation"],
    bucketsSeconds: CALL_BUCKETS_SECONDS,
  },
} as const satisfies MetricTable;

export type HostMetrics = Metrics<typeof HOST_METRICS>;
