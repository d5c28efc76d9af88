import { readFileSync } from "node:fs";
import { rmdir } from "node:fs/promises";
import { dirname } from "node:path";
import { type Clock, hasErrno, SandboxError } from "@turnbox/core";
import { type Patience, retryWhileBusy } from "./busy.ts";
import { storageError } from "./failure.ts";
import { type Mount, parseMountTable } from "./parse.ts";
import type { ZfsCommand } from "./zfs-command.ts";

const MOUNT_PATIENCE_MS = 3_000;
const ANSWER_DEADLINE_MS = 3000;
/** A mount that comes or goes may not answer for a moment, on a busy machine a long one: silence has to last. */
const DEATH_PATIENCE_MS = 2000;
const DEATH_POLL_MS = 250;
/** What the kernel says of a filesystem whose daemon has gone. */
const CUT_OFF = /endpoint is not connected|connection abort/;

/** A dataset and the directory where it belongs. */
export interface MountTarget {
  readonly dataset: string;
  readonly path: string;
}

/**
 * What is mounted, from the kernel's table. Nothing here touches a mounted directory from this process: a mount whose
 * daemon hangs would take a thread of the pool with it for ever.
 */
export interface Mounts {
  /** All mounts below the directory, the deepest and latest first, which is the order to unmount them in. */
  below(directory: string): readonly Mount[];
  isMounted(target: MountTarget): boolean;
  mount(target: MountTarget, signal: AbortSignal): Promise<void>;
  /** Where it stays mounted because of a user, `STORAGE_UNAVAILABLE`. What a dead daemon has left is detached. */
  unmount(target: MountTarget, patience: Omit<Patience, "clock">): Promise<void>;
  /** Takes dead mounts out of sight; whoever has files open there keeps getting errors. */
  detach(path: string, signal: AbortSignal): Promise<void>;
  /** Those of the paths whose filesystem answers a child process. One that hangs is `STORAGE_UNAVAILABLE`. */
  answering(paths: readonly string[], signal: AbortSignal): Promise<ReadonlySet<string>>;
  /**
   * Removes the directory where something was mounted, with what was written there while it was not, and the directory
   * above it where that is empty. One that is mounted stays.
   */
  removePlace(path: string, signal: AbortSignal): Promise<void>;
  /** Mounts below the directory that a dead daemon has left, in the order of `below`: those that stay without an answer. */
  dead(directory: string, signal: AbortSignal): Promise<readonly Mount[]>;
}

export interface MountsOptions {
  readonly zfs: ZfsCommand;
  readonly clock: Clock;
  /** The table of the mount namespace that the commands run in. */
  readonly mountTablePath: string;
}

export function createMounts({ zfs, clock, mountTablePath }: MountsOptions): Mounts {
  // At once: the kernel has it in memory, and the way over other threads takes longer than the answer.
  const table = (): readonly Mount[] => parseMountTable(readFileSync(mountTablePath, "utf8"));
  const find = ({ dataset, path }: MountTarget): Mount | undefined =>
    table().findLast((mount) => mount.path === path && mount.source === dataset);

  const isMounted: Mounts["isMounted"] = (target) => find(target) !== undefined;

  const removePlace: Mounts["removePlace"] = async (path, signal) => {
    if (table().some((entry) => `${entry.path}/`.startsWith(`${path}/`))) return;
    try {
      await rmdir(path);
    } catch (thrown) {
      if (hasErrno(thrown, "ENOTEMPTY", "EEXIST")) {
        const args = ["-rf", "--one-file-system", "--", path];
        await zfs.read("clearing the place of a mount", { program: "rm", args }, signal);
      }
    }
    await rmdir(dirname(path)).catch(() => undefined);
  };

  const mount: Mounts["mount"] = async (target, signal) => {
    const doing = "mounting";
    if (!isMounted(target)) {
      const args = ["mount", "-o", "nosuid,nodev", target.dataset];
      const isDone = (): Promise<boolean> => Promise.resolve(isMounted(target));
      const attempt = () => zfs.change({ program: "zfs", args, doing, isDone }, signal);
      // zfs-fuse may still be at an unmount that it has answered; elsewhere it does no harm to wait.
      const patience = { clock, flavor: "zfs-fuse", patienceMs: MOUNT_PATIENCE_MS, signal } as const;
      let outcome = await retryWhileBusy(attempt, patience);
      if (outcome.kind === "refused" && outcome.failure === "not-empty") {
        // Written to the place while nothing was mounted there: in no dataset, and in the way for ever.
        await removePlace(target.path, signal);
        outcome = await retryWhileBusy(attempt, patience);
      }
      if (outcome.kind === "refused" && !isMounted(target)) throw storageError(doing, outcome);
    }
    const mounted = find(target);
    if (mounted === undefined)
      throw new SandboxError("STORAGE_UNAVAILABLE", "the mount did not appear in the mount table");
    if (mounted.options.has("nosuid") && mounted.options.has("nodev")) return;
    // `zfs clone` mounts by itself, and zfs-fuse does so without regard to setuid=off and devices=off.
    const readOnly = mounted.options.has("ro") ? ",ro" : "";
    await zfs.read(
      "hardening a mount",
      { program: "mount", args: ["-o", `remount,bind,nosuid,nodev${readOnly}`, "--", target.path] },
      signal,
    );
  };

  const unmount: Mounts["unmount"] = async (target, patience) => {
    const doing = "unmounting";
    if (!isMounted(target)) return;
    const isDone = (): Promise<boolean> => Promise.resolve(!isMounted(target));
    const outcome = await retryWhileBusy(
      () => zfs.change({ program: "zfs", args: ["unmount", target.dataset], doing, isDone }, patience.signal),
      { clock, ...patience },
    );
    if (await isDone()) return;
    if (outcome.kind === "done") {
      // Mounted twice, one over the other: by a clone that outlived the service that asked for it, and by us.
      await unmount(target, patience);
      return;
    }
    if ((await answering([target.path], patience.signal)).has(target.path)) throw storageError(doing, outcome);
    await detach(target.path, patience.signal);
    if (!(await isDone())) throw storageError(doing, outcome);
  };

  const below: Mounts["below"] = (directory) =>
    table()
      .filter((entry) => entry.path.startsWith(`${directory}/`))
      .reverse();

  const detach: Mounts["detach"] = async (path, signal) => {
    await zfs.attempt({ program: "umount", args: ["-l", "--", path], deadlineMs: ANSWER_DEADLINE_MS }, signal);
  };

  /** A probe that hangs and cannot be killed; a second one would only hang beside it. */
  let hanging: Promise<unknown> | undefined;

  const answering: Mounts["answering"] = async (paths, signal) => {
    if (paths.length === 0) return new Set();
    if (hanging !== undefined) throw new SandboxError("STORAGE_UNAVAILABLE", "the mounts do not answer");
    // Of the filesystem, not of the directory: the kernel answers the latter from its cache long after a daemon's death.
    const args = ["--file-system", "--format=%T", "--", ...paths];
    const outcome = await zfs.attempt({ program: "stat", args, deadlineMs: ANSWER_DEADLINE_MS }, signal);
    if (outcome.kind === "unknown") {
      hanging = outcome.lingering?.then(() => {
        hanging = undefined;
      });
      throw new SandboxError("STORAGE_UNAVAILABLE", "the mounts do not answer", { cause: outcome.cause });
    }
    if (outcome.kind === "done") return new Set(paths);
    // Any other refusal is an answer too: of a filesystem that is being unmounted, for one.
    const cutOff = outcome.stderr.split("\n").filter((line) => CUT_OFF.test(line));
    return new Set(paths.filter((path) => !cutOff.some((line) => line.includes(`'${path}'`))));
  };

  return {
    below,
    isMounted,
    mount,
    unmount,
    detach,
    answering,
    removePlace,
    dead: async (directory, signal) => {
      const untilMs = clock.monotonicMs() + DEATH_PATIENCE_MS;
      let silent = new Set(below(directory).map(({ path }) => path));
      for (;;) {
        const alive = await answering([...silent], signal);
        // What was unmounted meanwhile did not answer either, and is not dead.
        const dead = below(directory).filter(({ path }) => silent.has(path) && !alive.has(path));
        if (dead.length === 0 || clock.monotonicMs() >= untilMs) return dead;
        silent = new Set(dead.map(({ path }) => path));
        await clock.sleep(DEATH_POLL_MS, { signal });
      }
    },
  };
}
