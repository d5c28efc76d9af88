import { begunDrain } from "../registry/drain-plan.ts";
import type { Action, Phase, World } from "./phase.ts";
import type { InstanceView } from "../registry/instance-view.ts";

/**
 * Takes hosts back that have become well again, and starts machines that should run and do not. A drain for any reason
 * but health goes on.
 */
export const recovery: Phase = (world) => world.instances.flatMap((view) => recover(view, world));

function recover(view: InstanceView, { policy, capabilities }: World): readonly Action[] {
  const { row, machine, goodInRow } = view;
  if (row.goal !== "running") return [];
  const { instanceId } = row;
  const drain = begunDrain(row);
  if (drain?.reason === "health" && goodInRow >= policy.healthyThreshold) return [{ kind: "undrain", instanceId }];
  const isDown = machine?.state === "stopped" && drain?.reason !== "interruption";
  return isDown && capabilities.stopStart === "supported" ? [{ kind: "start", instanceId }] : [];
}
