import { SandboxError } from "@turnbox/core";
import type { HostConnection } from "../control/host-connection.ts";
import type { InstanceRegistry } from "./registry/instance-registry.ts";

/** The answers of all hosts that give one, in the order of their ids; where none does, why the first does not. */
export async function askAll<T>(
  registry: InstanceRegistry,
  ask: (host: HostConnection) => Promise<T>,
): Promise<readonly [T, ...T[]]> {
  const outcomes = await Promise.allSettled(
    registry.connectedIds().map(async (instanceId) => await ask(registry.connection(instanceId))),
  );
  const [first, ...others] = outcomes.flatMap((outcome) => (outcome.status === "fulfilled" ? [outcome.value] : []));
  if (first !== undefined) return [first, ...others];
  const failure = outcomes.find((outcome) => outcome.status === "rejected");
  throw failure === undefined
    ? new SandboxError("FLEET_EXHAUSTED", "the fleet has no instances")
    : SandboxError.from(failure.reason);
}
