import { mkdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { type Clock, SandboxError } from "@turnbox/core";
import type { Layout } from "./layout.ts";
import type { Mounts, MountTarget } from "./mounts.ts";
import type { ZfsCommand } from "./zfs-command.ts";

/** Directories that the daemon needs and does not make. */
const DAEMON_DIRECTORIES = ["/var/run/zfs", "/var/lock/zfs", "/var/lib/zfs"] as const;
const PROBE_DEADLINE_MS = 3000;
const START_DEADLINE_MS = 10_000;
/** A killed daemon holds its lock until the kernel has taken its memory and mounts apart, most of a second. */
const START_PATIENCE_MS = 15_000;
const SILENCE_PATIENCE_MS = 6_000;
const POLL_MS = 100;
const NEVER = new AbortController().signal;

export interface DaemonOptions {
  readonly zfs: ZfsCommand;
  readonly mounts: Mounts;
  readonly clock: Clock;
  /** The pid file and the output of a daemon that we start go to the pool's directory. */
  readonly layout: Pick<Layout, "poolDirectory" | "mountRoot">;
}

/** How the daemon is, and what a dead one has left mounted of ours. */
export interface DaemonCondition {
  readonly presence: "answers" | "absent";
  readonly lost: readonly MountTarget[];
}

/**
 * Looks, and changes nothing. Without a daemon all mounts are lost; if one answers, mounts of an earlier one may still
 * be there. One that is only slow serves its mounts, so nothing may be removed from under it: it is an error.
 */
export async function examineDaemon(options: DaemonOptions, signal: AbortSignal): Promise<DaemonCondition> {
  const { mounts, layout } = options;
  const presence = await probeThroughDeath(options, signal);
  if (presence === "silent")
    throw new SandboxError("STORAGE_UNAVAILABLE", "the zfs-fuse daemon runs and does not answer");
  const lost = presence === "answers" ? await mounts.dead(layout.mountRoot, signal) : mounts.below(layout.mountRoot);
  return { presence, lost: lost.map(({ source, path }) => ({ dataset: source, path })) };
}

/**
 * Removes the lost mounts and starts the daemon, until it answers.
 *
 * The daemon serves every home of the machine: it is started if there is none, and never stopped. It allows one of its
 * kind by a lock of its own, so hosts that start at the same moment may all try: one daemon stays, and all wait
 * until one answers, whichever it is.
 */
export async function reviveDaemon(
  options: DaemonOptions,
  { presence, lost }: DaemonCondition,
  signal: AbortSignal,
): Promise<void> {
  for (const { path } of lost) await options.mounts.detach(path, signal);
  if (presence === "absent") await startUntilAnswering(options, signal);
}

/**
 * For the end of a home: whether a daemon is there that may hold the pool. If there is none, what it left mounted is
 * removed; one that is silent may hold it, and is an error.
 */
export async function findDaemon(options: DaemonOptions, signal: AbortSignal): Promise<"present" | "absent"> {
  const { presence, lost } = await examineDaemon(options, signal);
  for (const { path } of lost) await options.mounts.detach(path, signal);
  return presence === "answers" ? "present" : "absent";
}

/** A daemon that dies is silent before it is gone, for seconds on a busy machine: silence has to last to be believed. */
async function probeThroughDeath(
  { zfs, clock }: DaemonOptions,
  signal: AbortSignal,
): Promise<"answers" | "silent" | "absent"> {
  const startedMs = clock.monotonicMs();
  for (;;) {
    const presence = await probe(zfs, signal);
    if (presence !== "silent" || clock.monotonicMs() - startedMs > SILENCE_PATIENCE_MS) return presence;
    await clock.sleep(POLL_MS, { signal });
  }
}

async function probe(zfs: ZfsCommand, signal: AbortSignal): Promise<"answers" | "silent" | "absent"> {
  const outcome = await zfs.attempt(
    { program: "zpool", args: ["list", "-H", "-o", "name"], deadlineMs: PROBE_DEADLINE_MS },
    signal,
  );
  if (outcome.kind === "unknown") return "silent";
  if (outcome.kind === "done") return "answers";
  if (outcome.failure === "permission") throw new SandboxError("STORAGE_UNAVAILABLE", "zfs needs to run as root");
  return outcome.failure === "daemon-not-running" ? "absent" : "answers";
}

async function startUntilAnswering({ zfs, clock, layout }: DaemonOptions, signal: AbortSignal): Promise<void> {
  for (const needed of DAEMON_DIRECTORIES) await mkdir(needed, { recursive: true });
  const pidPath = join(layout.poolDirectory, "zfs-fuse.pid");
  const args = ["--no-kstat-mount", "--pidfile", pidPath];
  const outputPath = join(layout.poolDirectory, "zfs-fuse.log");
  const startedMs = clock.monotonicMs();
  let presence: "answers" | "silent" | "absent" = "absent";
  while (clock.monotonicMs() - startedMs < START_PATIENCE_MS) {
    if (presence === "absent") {
      // It refuses to start if a pid file is there, whichever process made it.
      await rm(pidPath, { force: true });
      // Its life is not tied to this call: only its own deadline ends the start.
      await zfs.attempt({ program: "zfs-fuse", args, outputPath, deadlineMs: START_DEADLINE_MS }, NEVER);
    }
    presence = await probe(zfs, signal);
    if (presence === "answers") return;
    await clock.sleep(POLL_MS, { signal });
  }
  throw new SandboxError("STORAGE_UNAVAILABLE", "the zfs-fuse daemon was started and does not answer");
}
