import { SandboxError } from "@turnbox/core";
import type { SignalSpec, SpawnedProcess } from "../../runtime.ts";
import { askSandbox } from "../container/liveness.ts";
import { type GvisorContext, runsc } from "../context.ts";
import { inspectProcess, spawnedPid } from "./spawn.ts";
import type { ContainerControl, TreeKiller } from "./tree-killer.ts";

const SIGKILL = 9;
const SIGNAL_DEADLINE_MS = 10_000;

/**
 * Signals a spawned process that runs. A pid inside may be used again, so one that has ended is never signalled. A paused container
 * takes no signals: it runs for that moment, and the process acts on the signal then or when the container is resumed.
 */
export async function signalProcess(
  context: GvisorContext,
  id: string,
  {
    process,
    spec,
    treeKiller,
    container,
    signal,
  }: {
    readonly process: SpawnedProcess;
    readonly spec: SignalSpec;
    readonly treeKiller: TreeKiller;
    readonly container: Pick<ContainerControl, "thawed">;
    readonly signal: AbortSignal;
  },
): Promise<void> {
  const { name: marker } = process;
  const pid = spawnedPid(process);
  const isRunning = (await inspectProcess(context, id, { process, signal })).kind === "running";
  const tree = isRunning ? { marker, pid } : { marker };
  if (spec.scope === "tree") {
    if (spec.signal === SIGKILL) await treeKiller.kill(id, tree);
    else await treeKiller.signal(id, tree, spec.signal);
    return;
  }
  if (!isRunning) return;
  const command = runsc(context, ["kill", `--pid=${String(pid)}`, id, String(spec.signal)], SIGNAL_DEADLINE_MS);
  await container.thawed(id, async () => {
    const { exitCode, stderr } = await context.runner.run(command, { signal });
    if (exitCode === 0) return;
    // The command that waits for the process may learn of its end later than the sandbox.
    const sandbox = await askSandbox(context, id, signal);
    if (!sandbox?.pids.includes(pid)) return;
    throw new SandboxError("RUNTIME_UNAVAILABLE", `a process of container ${id} does not take signals`, {
      cause: new Error(stderr.trim()),
    });
  });
}
