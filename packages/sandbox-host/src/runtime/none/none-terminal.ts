import type { ExecExit, ExecSpec, TerminalExecution, TerminalSize } from "../runtime.ts";
import { openPty } from "../execution/pty.ts";
import type { HostTree } from "./host-tree.ts";

/** A program of the host on a terminal of the host. */
export function openTerminalOnHost({
  spec,
  size,
  marks,
  tree,
}: {
  readonly spec: ExecSpec;
  readonly size: TerminalSize;
  readonly marks: Readonly<Record<string, string>>;
  readonly tree: HostTree;
}): TerminalExecution {
  const [command, ...args] = spec.argv;
  let killed = false;
  const pty = openPty({ command, args, env: { ...spec.env, ...marks }, cwd: spec.cwd, size });
  return {
    onOutput: pty.onOutput,
    hold: pty.hold,
    release: pty.release,
    write: pty.write,
    resize: pty.resize,
    exit: pty.ended.then(({ exitCode, signal }): ExecExit => {
      if (killed) return { kind: "killed" };
      return signal === 0 ? { kind: "exited", exitCode } : { kind: "signaled", signal };
    }),
    kill: async () => {
      killed = true;
      await tree.kill();
      pty.kill();
    },
  };
}
