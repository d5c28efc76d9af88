import { create } from "@bufbuild/protobuf";
import { type Duration, durationMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { invalidArgument, parseEnum, parseKey } from "@turnbox/core";
import {
  type DrainInstanceRequest,
  DrainSessions,
  type Instance,
  InstanceSchema,
  type RefreshInstancesRequest,
  DrainReason as WireDrainReason,
  InstanceState as WireInstanceState,
} from "@turnbox/protocol/turnbox/control/v1/fleet_pb";
import type { DrainRequest, FleetInstance, InstanceState } from "../fleet/fleet-view.ts";
import { parseInstanceId } from "../provisioner/instance-id.ts";

const STATES = {
  provisioning: WireInstanceState.PROVISIONING,
  ready: WireInstanceState.READY,
  active: WireInstanceState.ACTIVE,
  draining: WireInstanceState.DRAINING,
  stopped: WireInstanceState.STOPPED,
  terminating: WireInstanceState.TERMINATING,
} as const satisfies Record<InstanceState, WireInstanceState>;

const REASONS = {
  health: WireDrainReason.HEALTH,
  scale_down: WireDrainReason.SCALE_DOWN,
  operator: WireDrainReason.OPERATOR,
  refresh: WireDrainReason.REFRESH,
  interruption: WireDrainReason.INTERRUPTION,
} as const satisfies Record<NonNullable<FleetInstance["drainReason"]>, WireDrainReason>;

const SESSIONS: ReadonlyMap<number, DrainRequest["sessions"]> = new Map<number, DrainRequest["sessions"]>([
  [DrainSessions.UNSPECIFIED, "keep"],
  [DrainSessions.KEEP, "keep"],
  [DrainSessions.DISCARD, "discard"],
]);

/** The longest a drain may be given: a year. */
const MAX_DRAIN_MS = 365 * 86_400_000;
const IMAGE = /^[\x21-\x7e]{0,256}$/;

/**
 * The instance that a request is about. What is asked of instances has the same outcome however often it is done, so the
 * key is held to its rule and needs no record.
 */
export function fromInstanceRequest(request: { readonly idempotencyKey: string; readonly instanceId: string }): string {
  parseKey("idempotency_key", request.idempotencyKey);
  return parseInstanceId(request.instanceId);
}

export function fromDrainRequest(request: DrainInstanceRequest): DrainRequest {
  return {
    instanceId: fromInstanceRequest(request),
    timeoutMs: parseDrainMs(request.timeout),
    sessions: parseEnum("sessions", request.sessions, SESSIONS),
  };
}

export function fromRefreshRequest({ idempotencyKey, image }: RefreshInstancesRequest): { readonly image: string } {
  parseKey("idempotency_key", idempotencyKey);
  if (!IMAGE.test(image)) throw invalidArgument("image", "must have at most 256 printable characters and no blanks");
  return { image };
}

/** Nothing is a time too: what still runs is paused at once. */
function parseDrainMs(timeout: Duration | undefined): number | undefined {
  if (timeout === undefined) return undefined;
  const timeoutMs = durationMs(timeout);
  if (!(timeoutMs >= 0 && timeoutMs <= MAX_DRAIN_MS)) throw invalidArgument("timeout", "must be from 0 to 365 days");
  return timeoutMs;
}

export function toWireInstance(instance: FleetInstance): Instance {
  const { state, drainReason, url, labels, launchedAtMs, poolAvailableBytes, ...rest } = instance;
  return create(InstanceSchema, {
    ...rest,
    state: STATES[state],
    drainReason: drainReason === undefined ? WireDrainReason.UNSPECIFIED : REASONS[drainReason],
    url: url ?? "",
    labels: { ...labels },
    launchedAt: timestampFromMs(Math.round(launchedAtMs)),
    poolAvailableBytes: BigInt(Math.round(poolAvailableBytes)),
  });
}
