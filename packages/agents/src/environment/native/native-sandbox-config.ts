import type { SandboxCapabilities } from "@turnbox/client";
import { notSupported } from "../environment-error.ts";
import type { EnvironmentCapabilities } from "../execution-environment.ts";

/** Where a host keeps files; only `zfs` has snapshots. */
export type StorageBackend = "zfs" | "local-disk";
/** What runs the code on a host; `none` gives no isolation. */
export type ContainerRuntime = "gvisor" | "none";

/** What the caller counts on. A host that has less is refused; one that has more is fine. */
export interface NativeSandboxConfig {
  /** `zfs`: snapshots and rollback. */
  readonly storageBackend: StorageBackend;
  /** `gvisor`: code runs isolated, apart from the file tools. `none` takes a host without any isolation too. */
  readonly containerRuntime: ContainerRuntime;
}

/** Expects ZFS and gVisor. */
export const defaultConfig = (): NativeSandboxConfig => ({ storageBackend: "zfs", containerRuntime: "gvisor" });

/** What a host that is as expected can do. */
export const expectedCapabilities = (config: NativeSandboxConfig): EnvironmentCapabilities => ({
  snapshots: config.storageBackend === "zfs",
  rollback: config.storageBackend === "zfs",
  pause: true,
  lifecycle: true,
  streamingProgress: true,
  tierRouting: config.containerRuntime === "gvisor",
  isolation: config.containerRuntime,
  maxDurationMs: undefined,
});

export const toEnvironmentCapabilities = (host: SandboxCapabilities): EnvironmentCapabilities => ({
  snapshots: host.snapshots,
  rollback: host.rollback,
  pause: host.pause,
  lifecycle: true,
  streamingProgress: host.streamingProgress,
  tierRouting: host.tierRouting,
  isolation: host.runtime === "gvisor" ? "gvisor" : "none",
  maxDurationMs: host.maxSandboxDurationMs,
});

/** Throws CAPABILITY_NOT_SUPPORTED where the host has less than is expected of it. */
export function assertExpected(config: NativeSandboxConfig, host: SandboxCapabilities): void {
  if (config.storageBackend === "zfs" && !(host.snapshots && host.rollback))
    throw notSupported("snapshots", `expected storage zfs, but the host's ${host.storage} has no snapshots`);
  if (config.containerRuntime === "gvisor" && !(host.tierRouting && host.runtime === "gvisor"))
    throw notSupported("tierRouting", `expected runtime gvisor, but the host's ${host.runtime} does not isolate code`);
}
