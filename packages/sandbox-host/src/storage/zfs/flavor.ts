import { SandboxError } from "@turnbox/core";
import type { ZfsCommand } from "./zfs-command.ts";

/** It asks for nothing but a few words; a hung daemon gives none. */
const PROBE_DEADLINE_MS = 5000;

/**
 * Which implementation serves. They differ for us in three things: zfs-fuse is a daemon that can die, its `busy` passes by
 * itself soon after an unmount, and it mounts without the flags that the properties ask for.
 */
export type Flavor = "openzfs" | "zfs-fuse";

/**
 * Found by `zfs version`, which zfs-fuse does not have. OpenZFS prints its own version even if the kernel's part is not
 * loaded.
 */
export async function detectFlavor(zfs: ZfsCommand, signal: AbortSignal): Promise<Flavor> {
  const outcome = await zfs.attempt({ program: "zfs", args: ["version"], deadlineMs: PROBE_DEADLINE_MS }, signal);
  if (outcome.kind === "unknown")
    throw new SandboxError("STORAGE_UNAVAILABLE", "zfs does not answer", { cause: outcome.cause });
  if (outcome.kind === "done") return /^zfs-\D*2\./m.test(outcome.stdout) ? "openzfs" : "zfs-fuse";
  return /modprobe|zfs modules/i.test(outcome.stderr) ? "openzfs" : "zfs-fuse";
}
