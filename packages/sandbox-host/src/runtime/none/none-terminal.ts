import type { ExecSpec, TerminalExecution, TerminalExit, TerminalSize } from "../runtime.ts";
import { openPty, type PtyDependencies } from "../execution/pty.ts";
import type { HostTree } from "./host-tree.ts";

/** A program of the host on a terminal of the host. */
export async function openTerminalOnHost(
  deps: PtyDependencies,
  {
    spec,
    size,
    marks,
    tree,
  }: {
    readonly spec: ExecSpec;
    readonly size: TerminalSize;
    readonly marks: Readonly<Record<string, string>>;
    readonly tree: HostTree;
  },
): Promise<TerminalExecution> {
  const [command, ...args] = spec.argv;
  let killed = false;
  const pty = await openPty(deps, { command, args, env: { ...spec.env, ...marks }, cwd: spec.cwd, size });
  return {
    onOutput: pty.onOutput,
    hold: pty.hold,
    release: pty.release,
    write: pty.write,
    signal: pty.signal,
    resize: pty.resize,
    exit: pty.ended.then(async (end): Promise<TerminalExit> => {
      if (killed) return { kind: "killed" };
      if (end.kind === "ended")
        return end.signal === 0 ? { kind: "exited", exitCode: end.exitCode } : { kind: "signaled", signal: end.signal };
      // A program that ignores the hang-up does not end with its terminal.
      await tree.kill().catch(() => undefined);
      return { kind: "terminal_lost" };
    }),
    kill: async () => {
      killed = true;
      await tree.kill();
      pty.kill();
    },
  };
}
