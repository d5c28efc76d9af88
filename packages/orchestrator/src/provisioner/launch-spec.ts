import { invalidArgument } from "@turnbox/core";
import { parseInstanceId } from "./instance-id.ts";
import type { LaunchSpec, MachineQuery } from "./provisioner.ts";

export function checkLaunchSpec(spec: LaunchSpec): void {
  parseInstanceId(spec.instanceId);
  checkTags(spec.tags);
}

export function checkMachineQuery(query: MachineQuery): void {
  checkTags(query.tags);
}

function checkTags(tags: LaunchSpec["tags"]): void {
  if (Object.keys(tags).length === 0)
    throw invalidArgument("tags", "must name the fleet: no tags would mean every machine");
}
