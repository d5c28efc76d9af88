import {
  CALL_BUCKETS_SECONDS,
  MACHINE_BUCKETS_SECONDS,
  type Metrics,
  type MetricTable,
  RPC_METRICS,
} from "@turnbox/rpc/metrics";

/** Everything that an orchestrator shows at `/metrics`, besides what its process is like. docs/OPERATIONS.md lists the same. */
export const FLEET_METRICS = {
  ...RPC_METRICS,
  instances: {
    kind: "gauge",
    name: "turnbox_fleet_instances",
    help: "Instances, by state.",
    labels: ["state"],
  },
  instanceHealth: {
    kind: "gauge",
    name: "turnbox_fleet_instance_health",
    help: "Instances, by what their hosts say of their health; unknown where one did not answer.",
    labels: ["health"],
  },
  warmInstances: {
    kind: "gauge",
    name: "turnbox_fleet_warm_instances",
    help: "Ready instances without sandboxes that take new ones.",
    labels: [],
  },
  cordonedInstances: {
    kind: "gauge",
    name: "turnbox_fleet_cordoned_instances",
    help: "Instances that new sandboxes are kept off.",
    labels: [],
  },
  sandboxes: {
    kind: "gauge",
    name: "turnbox_fleet_sandboxes",
    help: "Sandboxes of all instances.",
    labels: [],
  },
  waitingCreates: {
    kind: "gauge",
    name: "turnbox_fleet_waiting_creates",
    help: "Creates that wait for room, in all replicas.",
    labels: [],
  },
  leaseHeld: {
    kind: "gauge",
    name: "turnbox_fleet_lease_held",
    help: "1 while this replica runs the control loop, else 0.",
    labels: [],
  },
  leaseEpoch: {
    kind: "gauge",
    name: "turnbox_fleet_lease_epoch",
    help: "The epoch of the lease that this replica holds; 0 where it holds none.",
    labels: [],
  },
  machineOperations: {
    kind: "counter",
    name: "turnbox_fleet_machine_operations_total",
    help: "What was asked of the maker of machines (launch, terminate, stop, start, list, describe), by outcome.",
    labels: ["operation", "outcome"],
  },
  machineSeconds: {
    kind: "histogram",
    name: "turnbox_fleet_machine_operation_duration_seconds",
    help: "How long the maker of machines took to answer, by operation.",
    labels: ["operation"],
    bucketsSeconds: CALL_BUCKETS_SECONDS,
  },
  sandboxOperations: {
    kind: "counter",
    name: "turnbox_fleet_sandbox_operations_total",
    help: "Operations on sandboxes that have ended (create, destroy, pause, resume, fork, connect), by outcome.",
    labels: ["operation", "outcome"],
  },
  sandboxSeconds: {
    kind: "histogram",
    name: "turnbox_fleet_sandbox_operation_duration_seconds",
    help: "How long operations on sandboxes took, by operation.",
    labels: ["operation"],
    bucketsSeconds: CALL_BUCKETS_SECONDS,
  },
  placementSeconds: {
    kind: "histogram",
    name: "turnbox_fleet_placement_duration_seconds",
    help: "How long it took to find a place for a sandbox, waiting for room included, by outcome.",
    labels: ["outcome"],
    bucketsSeconds: CALL_BUCKETS_SECONDS,
  },
  provisionSeconds: {
    kind: "histogram",
    name: "turnbox_fleet_provision_duration_seconds",
    help: "How long instances took from their launch until they were ready.",
    labels: [],
    bucketsSeconds: MACHINE_BUCKETS_SECONDS,
  },
  drainSeconds: {
    kind: "histogram",
    name: "turnbox_fleet_drain_duration_seconds",
    help: "How long drains took that have ended, by reason.",
    labels: ["reason"],
    bucketsSeconds: MACHINE_BUCKETS_SECONDS,
  },
  healthSeconds: {
    kind: "histogram",
    name: "turnbox_fleet_health_check_duration_seconds",
    help: "How long hosts took to say how they are, by outcome.",
    labels: ["outcome"],
    bucketsSeconds: CALL_BUCKETS_SECONDS,
  },
  tickSeconds: {
    kind: "histogram",
    name: "turnbox_fleet_control_loop_tick_duration_seconds",
    help: "How long one round of the control loop took, by outcome.",
    labels: ["outcome"],
    bucketsSeconds: CALL_BUCKETS_SECONDS,
  },
  storeOperations: {
    kind: "counter",
    name: "turnbox_fleet_store_operations_total",
    help: "Operations of the store that have ended, by operation and outcome.",
    labels: ["operation", "outcome"],
  },
  storeSeconds: {
    kind: "histogram",
    name: "turnbox_fleet_store_operation_duration_seconds",
    help: "How long operations of the store took, by operation.",
    labels: ["operation"],
    bucketsSeconds: CALL_BUCKETS_SECONDS,
  },
} as const satisfies MetricTable;

export type FleetMetrics = Metrics<typeof FLEET_METRICS>;
