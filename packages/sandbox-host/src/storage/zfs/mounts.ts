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

/** A dataset and the directory that it is mounted at. */
export interface MountTarget {
  readonly dataset: string;
  readonly path: string;
}

export interface MountsOptions {
  readonly zfs: ZfsCommand;
  readonly clock: Clock;
  /** The table of the mount namespace that the commands run in. */
  readonly mountTablePath: string;
}

/**
 * What is mounted, from the kernel's table. Nothing here touches a mounted directory from this process: a mount whose
 * daemon hangs would block a thread of the pool without end.
 */
export class Mounts {
  readonly #zfs: ZfsCommand;
  readonly #clock: Clock;
  readonly #mountTablePath: string;
  /** A probe that hangs and cannot be killed; a second one would only hang beside it. */
  #hanging: Promise<unknown> | undefined;

  constructor({ zfs, clock, mountTablePath }: MountsOptions) {
    this.#zfs = zfs;
    this.#clock = clock;
    this.#mountTablePath = mountTablePath;
  }

  /** All mounts below the directory, the deepest and latest first, which is the order to unmount them in. */
  below(directory: string): readonly Mount[] {
    return this.#table()
      .filter((entry) => entry.path.startsWith(`${directory}/`))
      .reverse();
  }

  isMounted(target: MountTarget): boolean {
    return this.#find(target) !== undefined;
  }

  async mount(target: MountTarget, signal: AbortSignal): Promise<void> {
    if (!this.isMounted(target)) await this.#mountNow(target, signal);
    const mounted = this.#find(target);
    if (mounted === undefined)
      throw new SandboxError("STORAGE_UNAVAILABLE", "the mount did not appear in the mount table");
    if (mounted.options.has("nosuid") && mounted.options.has("nodev")) return;
    // `zfs clone` mounts by itself, and zfs-fuse does so without regard to setuid=off and devices=off.
    const readOnly = mounted.options.has("ro") ? ",ro" : "";
    await this.#zfs.read(
      "hardening a mount",
      { program: "mount", args: ["-o", `remount,bind,nosuid,nodev${readOnly}`, "--", target.path] },
      signal,
    );
  }

  async #mountNow(target: MountTarget, signal: AbortSignal): Promise<void> {
    const doing = "mounting";
    const args = ["mount", "-o", "nosuid,nodev", target.dataset];
    const isDone = (): Promise<boolean> => Promise.resolve(this.isMounted(target));
    const attempt = () => this.#zfs.change({ program: "zfs", args, doing, isDone }, signal);
    // zfs-fuse may still be at an unmount that it has answered; elsewhere it does no harm to wait.
    const patience = { clock: this.#clock, flavor: "zfs-fuse", patienceMs: MOUNT_PATIENCE_MS, signal } as const;
    let outcome = await retryWhileBusy(attempt, patience);
    if (outcome.kind === "refused" && outcome.failure === "not-empty") {
      // Written to the mount point while nothing was mounted there: it is in no dataset, and keeps blocking the mount.
      await this.removeMountPoint(target.path, signal);
      outcome = await retryWhileBusy(attempt, patience);
    }
    if (outcome.kind === "refused" && !this.isMounted(target)) throw storageError(doing, outcome);
  }

  /** If it stays mounted because of a user, `STORAGE_UNAVAILABLE`. What a dead daemon has left is detached. */
  async unmount(target: MountTarget, patience: Omit<Patience, "clock">): Promise<void> {
    const doing = "unmounting";
    if (!this.isMounted(target)) return;
    const isDone = (): Promise<boolean> => Promise.resolve(!this.isMounted(target));
    const outcome = await retryWhileBusy(
      () => this.#zfs.change({ program: "zfs", args: ["unmount", target.dataset], doing, isDone }, patience.signal),
      { clock: this.#clock, ...patience },
    );
    if (await isDone()) return;
    if (outcome.kind === "done") {
      // Mounted twice, one over the other: by a clone that outlived the service that asked for it, and by us.
      await this.unmount(target, patience);
      return;
    }
    if ((await this.answering([target.path], patience.signal)).has(target.path)) throw storageError(doing, outcome);
    await this.detach(target.path, patience.signal);
    if (!(await isDone())) throw storageError(doing, outcome);
  }

  /** Takes dead mounts out of sight; a process that has files open there keeps getting errors. */
  async detach(path: string, signal: AbortSignal): Promise<void> {
    const args = ["-l", "--", path];
    await this.#zfs.attempt({ program: "umount", args, deadlineMs: ANSWER_DEADLINE_MS }, signal);
  }

  /** Those of the paths whose filesystem answers a child process. One that hangs is `STORAGE_UNAVAILABLE`. */
  async answering(paths: readonly string[], signal: AbortSignal): Promise<ReadonlySet<string>> {
    if (paths.length === 0) return new Set();
    if (this.#hanging !== undefined) throw new SandboxError("STORAGE_UNAVAILABLE", "the mounts do not answer");
    // Of the filesystem, not of the directory: the kernel answers the latter from its cache long after a daemon's death.
    const args = ["--file-system", "--format=%T", "--", ...paths];
    const outcome = await this.#zfs.attempt({ program: "stat", args, deadlineMs: ANSWER_DEADLINE_MS }, signal);
    if (outcome.kind === "unknown") {
      this.#hanging = outcome.lingering?.then(() => {
        this.#hanging = undefined;
      });
      throw new SandboxError("STORAGE_UNAVAILABLE", "the mounts do not answer", { cause: outcome.cause });
    }
    if (outcome.kind === "done") return new Set(paths);
    // Any other refusal is an answer too, for example of a filesystem that is being unmounted.
    const cutOff = outcome.stderr.split("\n").filter((line) => CUT_OFF.test(line));
    return new Set(paths.filter((path) => !cutOff.some((line) => line.includes(`'${path}'`))));
  }

  /**
   * Removes the directory that something was mounted at, with what was written there while it was not, and the directory
   * above it if that is empty. One that is mounted stays.
   */
  async removeMountPoint(path: string, signal: AbortSignal): Promise<void> {
    if (this.#table().some((entry) => `${entry.path}/`.startsWith(`${path}/`))) return;
    try {
      await rmdir(path);
    } catch (thrown) {
      if (hasErrno(thrown, "ENOTEMPTY", "EEXIST")) {
        const args = ["-rf", "--one-file-system", "--", path];
        await this.#zfs.read("clearing a mount point", { program: "rm", args }, signal);
      }
    }
    await rmdir(dirname(path)).catch(() => undefined);
  }

  /** Mounts below the directory that a dead daemon has left, in the order of `below`: those that stay without an answer. */
  async dead(directory: string, signal: AbortSignal): Promise<readonly Mount[]> {
    const untilMs = this.#clock.monotonicMs() + DEATH_PATIENCE_MS;
    let silent = new Set(this.below(directory).map(({ path }) => path));
    for (;;) {
      const alive = await this.answering([...silent], signal);
      // What was unmounted meanwhile did not answer either, and is not dead.
      const dead = this.below(directory).filter(({ path }) => silent.has(path) && !alive.has(path));
      if (dead.length === 0 || this.#clock.monotonicMs() >= untilMs) return dead;
      silent = new Set(dead.map(({ path }) => path));
      await this.#clock.sleep(DEATH_POLL_MS, { signal });
    }
  }

  /** Synchronous: the kernel has it in memory, and the way over other threads takes longer than the read. */
  #table(): readonly Mount[] {
    return parseMountTable(readFileSync(this.#mountTablePath, "utf8"));
  }

  #find({ dataset, path }: MountTarget): Mount | undefined {
    return this.#table().findLast((mount) => mount.path === path && mount.source === dataset);
  }
}
