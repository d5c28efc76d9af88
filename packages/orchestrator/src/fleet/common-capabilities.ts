import type { SandboxCapabilities } from "../control/sandbox-control.ts";

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
