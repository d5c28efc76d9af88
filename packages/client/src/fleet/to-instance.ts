import { SandboxError } from "@turnbox/core";
import {
  DrainReason as WireDrainReason,
  type Instance as WireInstance,
  InstanceState as WireState,
} from "@turnbox/protocol/turnbox/control/v1/fleet_pb";
import { toNumber } from "../sandbox/wire/number.ts";
import { toOptional } from "../sandbox/wire/text.ts";
import { toDate } from "../sandbox/wire/time.ts";
import type { DrainReason, Instance, InstanceState } from "./fleet-types.ts";

const STATES: ReadonlyMap<WireState, InstanceState> = new Map([
  [WireState.PROVISIONING, "provisioning"],
  [WireState.READY, "ready"],
  [WireState.ACTIVE, "active"],
  [WireState.DRAINING, "draining"],
  [WireState.STOPPED, "stopped"],
  [WireState.TERMINATING, "terminating"],
]);

const DRAIN_REASONS: ReadonlyMap<WireDrainReason, DrainReason | undefined> = new Map([
  [WireDrainReason.UNSPECIFIED, undefined],
  [WireDrainReason.HEALTH, "health"],
  [WireDrainReason.SCALE_DOWN, "scale_down"],
  [WireDrainReason.OPERATOR, "operator"],
  [WireDrainReason.REFRESH, "refresh"],
  [WireDrainReason.INTERRUPTION, "interruption"],
]);

export function toInstance(instance: WireInstance | undefined): Instance {
  if (instance === undefined) throw new SandboxError("INTERNAL", "the server's answer has no instance");
  const { instanceId, state, drainReason, cordoned, health, url, maxSessions, image, labels, message } = instance;
  return {
    id: instanceId,
    state: STATES.get(state) ?? "unknown",
    drainReason: DRAIN_REASONS.has(drainReason) ? DRAIN_REASONS.get(drainReason) : "unknown",
    cordoned,
    health,
    url: toOptional(url),
    sandboxCount: instance.sessionCount,
    maxSandboxes: maxSessions === 0 ? undefined : maxSessions,
    poolAvailableBytes: toNumber(instance.poolAvailableBytes),
    image,
    labels: { ...labels },
    launchedAt: toDate(instance.launchedAt),
    message,
  };
}
