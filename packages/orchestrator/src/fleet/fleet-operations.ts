import { type Clock, invalidArgument, SandboxError } from "@turnbox/core";
import type { DrainRequest, FleetInstance, FleetOperations } from "./fleet-view.ts";
import type { Provisioner } from "../provisioner/provisioner.ts";
import type { DrainPlan, InstanceRow, Store } from "../store/store.ts";
import { NOT_BEGUN_MS } from "./registry/drain-plan.ts";
import type { InstanceRegistry } from "./registry/instance-registry.ts";
import { updateRow } from "./registry/update-row.ts";

export interface OperationsOptions {
  readonly registry: InstanceRegistry;
  readonly store: Store;
  readonly provisioner: Pick<Provisioner, "capabilities" | "image">;
  readonly drainTimeoutMs: number;
  readonly clock: Clock;
  /** Called when a wish is on record. */
  readonly onWish: () => void;
}

interface Call {
  readonly signal: AbortSignal;
}

/** What an operator asks for, as wishes on record that any replica may write and the control loop fulfils. */
export function createFleetOperations(options: OperationsOptions): FleetOperations {
  const { registry, store, provisioner, clock, onWish } = options;

  const update = async (
    instanceId: string,
    change: (row: InstanceRow) => InstanceRow | undefined,
    call: Call,
  ): Promise<FleetInstance> => {
    const known = registry.row(instanceId);
    if (known?.version === 0) await store.putInstance(known, call);
    const row = await updateRow({ store, instanceId, change }, call);
    if (row === undefined) throw new SandboxError("INSTANCE_NOT_FOUND", `the fleet has no instance ${instanceId}`);
    registry.adoptRow(row);
    onWish();
    return registry.instance(instanceId);
  };

  /** Asked for once more, a drain goes on as it is. */
  const drained = (row: InstanceRow, { timeoutMs, sessions }: DrainRequest): InstanceRow | undefined => {
    if (row.goal === "terminated") return undefined;
    const isSame = row.drain?.reason === "operator" && row.drain.sessions === sessions;
    if (isSame && timeoutMs === undefined) return undefined;
    const sinceMs = clock.nowMs();
    const deadlineMs = sinceMs + (timeoutMs ?? options.drainTimeoutMs);
    return { ...row, drain: { reason: "operator", sinceMs, deadlineMs, sessions } };
  };

  /** Of an instance that waits for its turn nothing changes yet. */
  const queued = (row: InstanceRow): InstanceRow | undefined => {
    if (row.goal !== "running" || row.drain !== undefined) return undefined;
    const drain: DrainPlan = { reason: "refresh", sinceMs: NOT_BEGUN_MS, deadlineMs: NOT_BEGUN_MS, sessions: "keep" };
    return { ...row, drain };
  };

  return {
    cordon: (instanceId, call) =>
      update(instanceId, (row) => (row.admission === "cordoned" ? undefined : { ...row, admission: "cordoned" }), call),
    uncordon: (instanceId, call) =>
      update(
        instanceId,
        (row) =>
          row.goal === "terminated" ? undefined : { ...row, admission: "open", drain: undefined, goal: "running" },
        call,
      ),
    drain: (request, call) => update(request.instanceId, (row) => drained(row, request), call),
    refresh: async (request, call) => {
      const image = request.image === "" ? provisioner.image : request.image;
      if (image !== provisioner.image)
        throw invalidArgument("image", "must be the one that new instances are made from");
      if (provisioner.capabilities.launch === "unsupported") {
        throw new SandboxError("UNIMPLEMENTED", "the fleet does not make its machines, so it replaces none");
      }
      const replacing: string[] = [];
      const skipped: string[] = [];
      for (const row of await store.listInstances(call)) {
        if (row.image === image || row.goal === "terminated") continue;
        await update(row.instanceId, queued, call);
        const isQueued = registry.row(row.instanceId)?.drain?.reason === "refresh";
        (isQueued ? replacing : skipped).push(row.instanceId);
      }
      return { replacing, skipped };
    },
  };
}
