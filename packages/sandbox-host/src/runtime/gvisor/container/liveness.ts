import { type CommandExit, SandboxError } from "@turnbox/core";
import type { ExecExit, Liveness } from "../../runtime.ts";
import { type GvisorContext, liveState, runsc } from "../context.ts";
import { causeOfDeath } from "./death-causes.ts";
import { callSentry } from "./sentry-call.ts";
import type { ContainerState } from "./state-file.ts";

const ANSWER_DEADLINE_MS = 10_000;
const SENTRY_DEADLINE_MS = 2000;

export interface SandboxAnswer {
  readonly liveness: Exclude<Liveness, "gone">;
  /** All processes inside, as it numbers them. */
  readonly pids: readonly number[];
}

/** Asks the sandbox itself; undefined if it is gone. Silence of a live one is not death: it is `RUNTIME_UNAVAILABLE`. */
export async function askSandbox(
  context: GvisorContext,
  id: string,
  signal?: AbortSignal,
): Promise<SandboxAnswer | undefined> {
  const state = await liveState(context, id);
  if (state === undefined) return undefined;
  const liveness = state.status === "paused" ? "paused" : "running";
  const listed = await listBySentry(context, state, signal);
  if (listed !== undefined) return { liveness, pids: listed };
  const command = runsc(context, ["ps", "--format=json", id], ANSWER_DEADLINE_MS);
  const { exitCode, stdout, stderr } = await context.runner.run(command, signal === undefined ? {} : { signal });
  if (exitCode === 0) return { liveness, pids: parsePids(stdout) };
  // A dying sentry lets go of its control socket a moment before its process is gone.
  if (stderr.includes("connecting to control server") || (await liveState(context, id)) === undefined) return undefined;
  throw new SandboxError("RUNTIME_UNAVAILABLE", `container ${id} does not answer`, { cause: new Error(stderr.trim()) });
}

/** Undefined if the sentry is not asked itself, or did not answer: then runsc says why. */
async function listBySentry(
  { execs }: GvisorContext,
  { id, controlSocketPath: socketPath }: ContainerState,
  signal?: AbortSignal,
): Promise<readonly number[] | undefined> {
  if (execs.way === "runsc" || socketPath === undefined) return undefined;
  const limits = [AbortSignal.timeout(SENTRY_DEADLINE_MS), ...(signal === undefined ? [] : [signal])];
  try {
    return pidsOf(await callSentry({ socketPath, method: "Processes", arg: id }, AbortSignal.any(limits)));
  } catch {
    signal?.throwIfAborted();
    return undefined;
  }
}

/** A list of processes, or null for none. */
function pidsOf(listed: unknown): readonly number[] {
  const rows = Array.isArray(listed) ? (listed as readonly { readonly pid?: unknown }[]) : [];
  return rows.map(({ pid }) => Number(pid));
}

export async function readLiveness(context: GvisorContext, id: string, signal?: AbortSignal): Promise<Liveness> {
  return (await askSandbox(context, id, signal))?.liveness ?? "gone";
}

/** What `runsc ps --format=json` prints: `[1,2,7]`, even if it is written as `null` for none. */
export function parsePids(output: string): readonly number[] {
  return [...output.matchAll(/\d+/g)].map(([digits]) => Number(digits));
}

/**
 * What the end of a `runsc exec` that was not killed means. Below 128 the code is the program's own. From 128 on it may
 * also be runsc's code for a sandbox that died; and runsc reports a program ended by signal N as 128 + N, as shells do.
 */
export async function judgeExit(context: GvisorContext, id: string, exit: CommandExit): Promise<ExecExit> {
  if (exit.kind === "exited" && exit.exitCode < 128) return exit;
  const liveness = await readLiveness(context, id).catch(() => "running" as const);
  if (liveness === "gone") return { kind: await causeOfDeath(context, id) };
  return exit.kind === "exited" ? exit : { kind: "killed" };
}
