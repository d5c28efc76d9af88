import type { Machine, Tags } from "../../provisioner/provisioner.ts";

const FLEET_TAG = "turnbox-fleet";

/** The tags by which a fleet knows its own machines. */
export function fleetTags(fleetId: string): Tags {
  return { [FLEET_TAG]: fleetId };
}

/** Whether the machine is the fleet's; what its maker answers with is not believed blindly. */
export function isOwn(machine: Machine, fleetId: string): boolean {
  return machine.tags[FLEET_TAG] === fleetId;
}
