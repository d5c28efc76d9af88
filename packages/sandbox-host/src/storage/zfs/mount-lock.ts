/**
 * zfs-fuse learns of each new mount by two writes into one pipe, without a lock: two mounts at once mix up, and the daemon
 * waits without end for bytes that never come, with all mounts of all homes. So a command that may mount runs alone on the whole
 * machine. See docs/decisions/0007.
 */
export const MOUNT_LOCK_PATH = "/run/turnbox/zfs-mounts.lock";

/** How long to wait for others that mount. */
export const MOUNT_LOCK_WAIT_MS = 15_000;
/** What a command ends with that did not get its turn; zfs and zpool never do. */
export const NO_TURN_EXIT_CODE = 75;

const MOUNTING: Readonly<Record<string, ReadonlySet<string>>> = {
  // A clone and a new dataset are mounted by zfs-fuse whatever `canmount` says, unless it is `NEVER_MOUNTED`.
  zfs: new Set(["clone", "create", "mount"]),
  zpool: new Set(["create", "import"]),
};

const NEVER_MOUNTED = "canmount=off";

/** A program and its arguments. */
interface Command {
  readonly program: string;
  readonly args: readonly string[];
}

export function mayMount({ program, args: [verb = "", ...args] }: Command): boolean {
  return MOUNTING[program]?.has(verb) === true && !(program === "zfs" && args.includes(NEVER_MOUNTED));
}

/** The same command, run while no other one mounts. The lock ends with the command, however it ends. */
export function inMountTurn({ program, args }: Command, lockPath: string): readonly [string, readonly string[]] {
  const wait = ["--timeout", String(MOUNT_LOCK_WAIT_MS / 1000), "--conflict-exit-code", String(NO_TURN_EXIT_CODE)];
  return ["flock", ["--no-fork", ...wait, lockPath, program, ...args]];
}
