import { rm } from "node:fs/promises";
import type { Clock } from "@turnbox/core";
import { cannotBeEnded } from "../../execution/within-stop-limit.ts";
import type { Cgroup } from "./cgroup.ts";
import { isLiveMember } from "./process-state.ts";
import { controlSocketPath, lockFilePath, readStateFile, stateFilePath } from "./state-file.ts";

/** Together they stay below what stopping a container may take. */
const FIRST_TRY_MS = 6000;
const REPAIR_MS = 4000;
const SECOND_TRY_MS = 3000;
const POLL_MS = 2;

export interface TeardownRequest {
  readonly id: string;
  /** The sandbox that it is in, and that ends with it. */
  readonly sandboxId: string;
  readonly runscRoot: string;
  readonly cgroup: Cgroup;
  readonly cgroupPath: string;
  readonly clock: Clock;
  /** Ends the waiting, and leaves what is left for the same call again. */
  readonly signal: AbortSignal;
  /** `runsc delete --force`: if the quick way leaves something. */
  repair(deadlineMs: number): Promise<void>;
}

/**
 * Ends a container without runsc, whose own way takes up to two seconds: it polls, and takes zombies for alive.
 *
 * Every process of the container, sentry, gofer and stubs, is in its cgroup, so a cgroup that can be removed proves that
 * none is left. State goes last: a crash halfway leaves a container that is found again. Idempotent.
 */
export async function tearDown(request: TeardownRequest): Promise<void> {
  if ((await killAll(request, FIRST_TRY_MS)) === "busy") {
    await repair(request);
    if ((await killAll(request, SECOND_TRY_MS)) === "busy") throw cannotBeEnded(request.id);
  }
  const { runscRoot, id, sandboxId } = request;
  const state = readStateFile(runscRoot, id, sandboxId);
  // A boot that was cut off leaves a socket without a state that names it.
  for (const path of [state?.controlSocketPath, controlSocketPath(runscRoot, sandboxId)]) {
    if (path !== undefined) await rm(path, { force: true });
  }
  for (const name of new Set([sandboxId, id])) {
    await rm(lockFilePath(runscRoot, name, sandboxId), { force: true });
    await rm(stateFilePath(runscRoot, name, sandboxId), { force: true });
  }
}

/** Tries the repair for a while: its success shows by what is left, and it may itself hang on what hangs. */
async function repair(request: TeardownRequest): Promise<void> {
  const { clock, signal } = request;
  const settled = new AbortController();
  const over = clock.sleep(REPAIR_MS, { signal: AbortSignal.any([settled.signal, signal]) });
  await Promise.race([request.repair(REPAIR_MS).catch(() => undefined), over.catch(() => undefined)]);
  settled.abort();
}

async function killAll(request: TeardownRequest, patienceMs: number): Promise<"gone" | "busy"> {
  const { cgroup, clock, signal } = request;
  const deadlineMs = clock.monotonicMs() + patienceMs;
  for (;;) {
    const alive = await members(request);
    for (const pid of alive) kill(pid);
    if (alive.length === 0 && (await cgroup.remove()) === "removed") return "gone";
    if (clock.monotonicMs() > deadlineMs) return "busy";
    await clock.sleep(POLL_MS, { signal });
  }
}

/** The pids of the state file count only as far as they are members; the rest is whatever the cgroup lists. */
async function members({ runscRoot, id, sandboxId, cgroup, cgroupPath }: TeardownRequest): Promise<readonly number[]> {
  const state = readStateFile(runscRoot, id, sandboxId);
  const candidates = new Set([...(await cgroup.pids()), state?.sandboxPid ?? 0, state?.goferPid ?? 0]);
  return [...candidates].filter((pid) => isLiveMember(pid, cgroupPath));
}

function kill(pid: number): void {
  try {
    process.kill(pid, "SIGKILL");
  } catch {
    // It has ended in the meantime.
  }
}
