import type { FleetPolicy } from "../../packages/orchestrator/src/fleet/loop/phase.ts";
import type { ProvisionerCapabilities } from "../../packages/orchestrator/src/provisioner/provisioner.ts";
import { Chance } from "./chance.ts";

export const FAULTS = [
  "partition",
  "isolation",
  "host_restart",
  "host_hang",
  "illness",
  "interruption",
  "power_off",
  "orchestrator_kill",
  "orchestrator_pause",
  "operator_drain",
  "operator_discard",
  "operator_cordon",
  "operator_refresh",
  "bad_network",
  "bad_cloud",
  "bad_lists",
  "bad_boots",
  "bad_store",
] as const;

export type Fault = (typeof FAULTS)[number];

/** What one seed is about. */
export interface Scenario {
  readonly policy: FleetPolicy;
  readonly orchestrators: number;
  readonly maxSessions: number;
  readonly headroom: number;
  readonly stopStart: ProvisionerCapabilities["stopStart"];
  readonly clients: number;
  /** How long clients come and faults happen. */
  readonly stormMs: number;
  /** Within which everything must be as it should be after that. */
  readonly convergeWithinMs: number;
  readonly meanFaultMs: number;
  readonly faults: readonly Fault[];
}

/** Each seed has some of the faults only: what hides behind another one shows where that is missing. */
export function drawScenario(seed: number): Scenario {
  const chance = new Chance(seed * 2 + 1);
  const minInstances = chance.whole(0, 3);
  const share = chance.pick([0, 0.2, 0.5, 0.8]) ?? 0;
  return {
    policy: {
      minInstances,
      maxInstances: Math.max(minInstances, chance.whole(3, 8)),
      warmPoolTarget: chance.whole(0, 2),
      idleCooldownMs: chance.between(30_000, 120_000),
      provisionTimeoutMs: chance.between(120_000, 240_000),
      drainTimeoutMs: chance.between(30_000, 120_000),
      maxConcurrentProvisions: chance.whole(1, 3),
      healthyThreshold: 2,
      unhealthyThreshold: 3,
      maxTerminateRetries: 5,
    },
    orchestrators: chance.whole(1, 2),
    maxSessions: chance.whole(3, 12),
    headroom: chance.pick([0, 0, 0.2]) ?? 0,
    stopStart: chance.happens(0.7) ? "supported" : "unsupported",
    clients: chance.pick([0, 20, 40, 60, 80]) ?? 0,
    stormMs: chance.between(300_000, 900_000),
    convergeWithinMs: 1_800_000,
    meanFaultMs: chance.between(15_000, 90_000),
    faults: FAULTS.filter(() => chance.happens(share)),
  };
}
