import { rm, writeFile } from "node:fs/promises";
import { type CommandExit, randomToken, SandboxError } from "@turnbox/core";
import type { ExecSpec, TerminalExecution, TerminalExit, TerminalSize } from "../../runtime.ts";
import { openPty, type Pty, type PtyEnd } from "../../execution/pty.ts";
import { type GvisorContext, liveState, lost, runsc } from "../context.ts";
import { checkSpec, startFailure } from "./start-process.ts";
import { type ExecFiles, execFiles, readPid, removeExecFiles } from "./exec-files.ts";
import { judgeExit } from "../container/liveness.ts";
import { createProcessSpec } from "../container/oci-spec.ts";
import { MARKER_VARIABLE } from "./process-tree.ts";
import type { TreeKiller } from "./tree-killer.ts";

const MARKER_CHARS = 26;
const START_DEADLINE_MS = 30_000;
const POLL_MS = 2;
/** The path in which runsc is looked up; what runs inside has an environment of its own. */
const PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/**
 * Starts a process by `runsc exec` on a terminal of the host, which gVisor makes the controlling terminal inside: its size
 * and its special characters work as on any other. It has the files of an execution, so that a service that died leaves
 * something for `quiesce` to find.
 */
export async function openTerminal(context: GvisorContext, id: string, opening: Opening): Promise<TerminalExecution> {
  opening.signal.throwIfAborted();
  checkSpec(opening.spec);
  if ((await liveState(context, id)) === undefined) throw lost(id);
  const marker = randomToken(MARKER_CHARS);
  const files = execFiles(context.layout, id, marker);
  const release = (): void => {
    removeExecFiles(files);
    context.ownExecs.delete(marker);
  };
  context.ownExecs.add(marker);
  try {
    return await startOnPty(context, id, { ...opening, marker, files, release });
  } catch (thrown) {
    release();
    throw thrown;
  }
}

interface Opening {
  readonly spec: ExecSpec;
  readonly size: TerminalSize;
  readonly treeKiller: TreeKiller;
  readonly signal: AbortSignal;
}

interface MarkedOpening extends Opening {
  readonly marker: string;
  readonly files: ExecFiles;
  /** Called when the process has ended. */
  readonly release: () => void;
}

async function startOnPty(
  context: GvisorContext,
  id: string,
  { spec, size, treeKiller, signal, marker, files, release }: MarkedOpening,
): Promise<TerminalExecution> {
  const env = { ...spec.env, [MARKER_VARIABLE]: marker };
  const process = { ...createProcessSpec({ ...spec, env }), terminal: true };
  await writeFile(files.processPath, JSON.stringify(process), { mode: 0o600 });
  const args = ["exec", `--process=${files.processPath}`, `--internal-pid-file=${files.pidPath}`, id];
  const command = runsc(context, args, START_DEADLINE_MS);
  const pty = await openPty(context, { command: command.command, args: command.args, env: { PATH }, cwd: "/", size });
  const pid = await awaitPid(context, { id, pty, pidPath: files.pidPath, signal }).catch(async (thrown: unknown) => {
    pty.kill();
    await treeKiller.kill(id, { marker });
    throw thrown;
  });
  await rm(files.processPath, { force: true });
  const exit = pty.ended.then(async (end) => {
    // The process inside may not notice that its terminal is gone.
    if (end.kind === "lost") await treeKiller.kill(id, { marker, pid }).catch(() => undefined);
    const verdict = await judgeEnd(context, id, end);
    release();
    return verdict;
  });
  const { onOutput, hold, release: goOn, write, signal: signalForeground, resize } = pty;
  const kill = async (): Promise<void> => {
    await treeKiller.kill(id, { marker, pid });
    pty.kill();
  };
  return { onOutput, hold, release: goOn, write, signal: signalForeground, resize, exit, kill };
}

async function judgeEnd(context: GvisorContext, id: string, end: PtyEnd): Promise<TerminalExit> {
  const signaled: CommandExit = { kind: "signaled", signal: "SIGKILL", deadline: "kept" };
  const exit: CommandExit =
    end.kind === "ended" && end.signal === 0 ? { kind: "exited", exitCode: end.exitCode } : signaled;
  const verdict = await judgeExit(context, id, exit).catch(() => ({ kind: "sandbox_lost" }) as const);
  return end.kind === "lost" && verdict.kind === "killed" ? { kind: "terminal_lost" } : verdict;
}

async function awaitPid(
  context: GvisorContext,
  {
    id,
    pty,
    pidPath,
    signal,
  }: { readonly id: string; readonly pty: Pty; readonly pidPath: string; readonly signal: AbortSignal },
): Promise<number> {
  const { clock } = context;
  const seen = { ended: false };
  const onEnd = (): void => {
    seen.ended = true;
  };
  pty.ended.then(onEnd, onEnd);
  const deadlineMs = clock.monotonicMs() + START_DEADLINE_MS;
  for (;;) {
    const { ended } = seen;
    const pid = readPid(pidPath);
    if (pid > 0) return pid;
    if (ended) throw await startFailure(context, id, pty.shown());
    signal.throwIfAborted();
    if (clock.monotonicMs() > deadlineMs)
      throw new SandboxError("RUNTIME_UNAVAILABLE", `container ${id} does not start processes`, {
        admitted: "unknown",
      });
    await clock.sleep(POLL_MS);
  }
}
