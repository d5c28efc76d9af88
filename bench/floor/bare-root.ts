import { copyFile, mkdir, symlink } from "node:fs/promises";
import { join } from "node:path";
import { MOUNT_POINTS } from "../../packages/sandbox-host/src/runtime/gvisor/container/oci-spec.ts";
import { command } from "../run/command.ts";

const BUSYBOX = "/bin/busybox";
const BASH = "/bin/bash-static";

/**
 * Fills a directory with what the template `mini` has: static busybox with its links, static bash. `sh` is the same bash that
 * the tool `bash` runs: busybox's own shell does `ls` and the like by itself, without starting a program.
 */
export async function fillBareRoot(root: string): Promise<void> {
  for (const directory of ["bin", "etc", "root", "workspace"]) await mkdir(join(root, directory), { recursive: true });
  for (const { path, mode } of MOUNT_POINTS) await mkdir(join(root, path), { recursive: true, mode });
  await copyFile(BUSYBOX, join(root, "bin/busybox"));
  await copyFile(BASH, join(root, "bin/bash"));
  await symlink("bash", join(root, "bin/sh"));
  const applets = (await command(BUSYBOX, ["--list"])).split("\n").filter((name) => name !== "");
  for (const applet of applets) {
    if (!["busybox", "bash", "sh"].includes(applet)) await symlink("busybox", join(root, "bin", applet));
  }
}

/** The directory with the program that PID 1 runs, as the host has it. */
export async function fillInitDirectory(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true });
  await copyFile(BUSYBOX, join(directory, "busybox"));
}
