import type { Instance } from "@aws-sdk/client-ec2";
import type { Machine, MachineState, Tags } from "../provisioner.ts";
import { INSTANCE_TAG } from "./ec2-options.ts";

/** One machine as EC2 shows it at one moment. */
export interface Seen {
  readonly ec2Id: string;
  readonly machine: Machine;
}

export interface AddressRule {
  readonly hostPort: number;
  readonly hostAddress: "private_ip" | "private_dns";
}

const STATES: Readonly<Record<string, MachineState>> = {
  pending: "pending",
  running: "running",
  stopping: "stopping",
  stopped: "stopped",
  "shutting-down": "terminating",
  terminated: "terminated",
};

/** Undefined for what does not carry an id of the fleet: nothing of ours. */
export function seenOf(instance: Instance, rule: AddressRule): Seen | undefined {
  const { InstanceId: ec2Id, Tags: tagList = [] } = instance;
  const all = Object.fromEntries(tagList.map(({ Key = "", Value = "" }) => [Key, Value]));
  const instanceId = all[INSTANCE_TAG];
  if (ec2Id === undefined || instanceId === undefined) return undefined;
  const state = STATES[instance.State?.Name ?? ""] ?? "pending";
  return {
    ec2Id,
    machine: {
      instanceId,
      state,
      url: state === "running" ? urlOf(instance, rule) : undefined,
      tags: fleetTagsOf(all),
      launchedAtMs: instance.LaunchTime?.getTime() ?? 0,
      problem: problemOf(instance, state),
      image: instance.ImageId ?? "",
      interruption: undefined,
    },
  };
}

function fleetTagsOf(all: Tags): Tags {
  const isOurs = (key: string): boolean => key !== INSTANCE_TAG && key !== "Name" && !key.startsWith("aws:");
  return Object.fromEntries(Object.entries(all).filter(([key]) => isOurs(key)));
}

function urlOf(instance: Instance, { hostPort, hostAddress }: AddressRule): string | undefined {
  const name = hostAddress === "private_ip" ? instance.PrivateIpAddress : instance.PrivateDnsName;
  return name === undefined || name === "" ? undefined : `https://${name}:${hostPort}`;
}

/** Why it ended or stopped, unless that was asked for. */
function problemOf(instance: Instance, state: MachineState): string | undefined {
  const { Code: code = "", Message: message = code } = instance.StateReason ?? {};
  if (state === "pending" || state === "running" || code === "" || code.startsWith("Client.User")) return undefined;
  return message;
}
