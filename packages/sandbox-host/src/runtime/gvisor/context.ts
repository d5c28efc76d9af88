import { readFile } from "node:fs/promises";
import { type Clock, type CommandRunner, type CommandSpec, type ProcessIdentity, SandboxError } from "@turnbox/core";
import { type Helper } from "../../system/helper/helper.ts";
import { type FifoSupply } from "../../system/fifo/fifo-supply.ts";
import type { LingeringOutputs } from "../execution/lingering-outputs.ts";
import type { ContainerLimits, ExecExit } from "../runtime.ts";
import { type Cgroup, createCgroup, readCgroupMounts } from "./container/cgroup.ts";
import { type Layout, sandboxNote } from "./container/layout.ts";
import { isLiveMember } from "./container/process-state.ts";
import type { CgroupFreezer } from "./idle/cgroup-freezer.ts";
import { runscCommand } from "./runsc-command.ts";
import { type ContainerState, isBooted, readStateFile } from "./container/state-file.ts";

/** What a root has below itself before a container is booted on it. Each is made if it is missing. */
export interface RootNeeds {
  readonly directories: readonly { readonly path: string; readonly mode: number }[];
  readonly files: readonly { readonly path: string; readonly mode: number }[];
}

/** Makes what is missing in a session's root, in a process of its own that no link leads out of the root. */
export type PrepareRoot = (rootPath: string, needs: RootNeeds, call: { readonly signal: AbortSignal }) => Promise<void>;

/** Why a sandbox that has died did so. */
export type DeathCause = Extract<ExecExit["kind"], "oom" | "sandbox_lost">;

/** What is known of the deaths of containers, for as long as a service lives. */
export interface Deaths {
  /** The processes that a container lives by, if they were seen alive. */
  readonly seen: Map<string, readonly ProcessIdentity[]>;
  /** The counter that shows the cause goes with the cgroup, and a caller that waits for a process may ask after that. */
  readonly causes: Map<string, DeathCause>;
}

/** What the parts of the gVisor runtime share. */
export interface GvisorContext {
  readonly runner: CommandRunner;
  /** Passes files to sentries; absent if processes are started by `runsc` alone. */
  readonly helper: Helper | undefined;
  readonly fifos: FifoSupply;
  readonly prepareRoot: PrepareRoot;
  /** How processes are started, as `open` has proven it. */
  readonly execs: { way: "sentry" | "runsc" };
  readonly clock: Clock;
  readonly layout: Layout;
  readonly runscPath: string;
  readonly cgroupParent: string;
  readonly defaultLimits: ContainerLimits;
  /** How many spawned processes of a container are reckoned with. */
  readonly maxSpawned: number;
  readonly lingering: LingeringOutputs;
  /** The executions that this instance looks after, by their markers. */
  readonly ownExecs: Set<string>;
  readonly deaths: Deaths;
  /** Absent when no idle container is frozen, or the machine has none. */
  readonly freezer: CgroupFreezer | undefined;
  /** The sandboxes that containers are in, as far as they were asked about. */
  readonly sandboxes: Map<string, string>;
}

export function runsc(context: GvisorContext, args: readonly string[], deadlineMs: number): CommandSpec {
  return runscCommand({ runscPath: context.runscPath, runscRoot: context.layout.runscRoot, args, deadlineMs });
}

/** For the boot of a container that has a network. */
export function runscWithNetwork(context: GvisorContext, args: readonly string[], deadlineMs: number): CommandSpec {
  const { runscPath, layout } = context;
  return runscCommand({ runscPath, runscRoot: layout.runscRoot, args, deadlineMs, network: "sandbox" });
}

/** The sandbox that a container is in. It is on record before the container is booted. */
export async function sandboxOf({ layout, sandboxes }: GvisorContext, id: string): Promise<string> {
  const known = sandboxes.get(id);
  if (known !== undefined) return known;
  const noted = await readFile(sandboxNote(layout, id), "utf8").catch(() => id);
  // A boot that came in between knows better.
  const sandboxId = sandboxes.get(id) ?? noted;
  sandboxes.set(id, sandboxId);
  return sandboxId;
}

export function cgroupPath(context: GvisorContext, sandboxId: string): string {
  return `${context.cgroupParent}/${sandboxId}`;
}

/** The group that a container is in, with its whole sandbox. */
export async function cgroupOf(context: GvisorContext, id: string): Promise<Cgroup> {
  return createCgroup(await readCgroupMounts(), cgroupPath(context, await sandboxOf(context, id)));
}

/**
 * The state of a container whose processes live. Sentry and gofer are both needed: without its gofer, a sandbox goes on
 * but cannot reach its files.
 */
export async function liveState(context: GvisorContext, id: string): Promise<ContainerState | undefined> {
  const sandboxId = await sandboxOf(context, id);
  const state = readStateFile(context.layout.runscRoot, id, sandboxId);
  if (state === undefined || !isBooted(state)) return undefined;
  const path = cgroupPath(context, sandboxId);
  return isLiveMember(state.sandboxPid, path) && isLiveMember(state.goferPid, path) ? state : undefined;
}

export function lost(id: string, cause?: unknown): SandboxError {
  return new SandboxError("SANDBOX_LOST", `container ${id} does not run`, { admitted: "no", cause });
}
