import { SandboxError } from "@turnbox/core";
import type { HostConnection } from "../control/host-connection.ts";
import type { InstanceRegistry } from "./registry/instance-registry.ts";
import type { SandboxCapabilities } from "../control/sandbox-control.ts";

/** The answers of all hosts that give one, in the order of their ids; if none does, why the first does not. */
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

type Some = readonly [SandboxCapabilities, ...SandboxCapabilities[]];

/** What every one of several hosts can do, and how much all of them together. */
export function commonCapabilities(hosts: Some): SandboxCapabilities {
  const every = (pick: (host: SandboxCapabilities) => boolean): boolean => hosts.every(pick);
  const words = (pick: (host: SandboxCapabilities) => string): string => [...new Set(hosts.map(pick))].sort().join("+");
  const limits = hosts.map((host) => host.concurrentSandboxes);
  const durations = hosts.map((host) => host.maxSandboxDurationMs).filter((durationMs) => durationMs > 0);
  return {
    snapshots: every((host) => host.snapshots),
    rollback: every((host) => host.rollback),
    fork: every((host) => host.fork),
    pause: every((host) => host.pause),
    launchProcess: every((host) => host.launchProcess),
    deepPause: every((host) => host.deepPause),
    pausePreservesProcesses: every((host) => host.pausePreservesProcesses),
    tierRouting: every((host) => host.tierRouting),
    streamingProgress: every((host) => host.streamingProgress),
    concurrentSandboxes: limits.includes(0) ? 0 : limits.reduce((sum, limit) => sum + limit, 0),
    maxSandboxDurationMs: durations.length === 0 ? 0 : Math.min(...durations),
    storage: words((host) => host.storage),
    runtime: words((host) => host.runtime),
  };
}
