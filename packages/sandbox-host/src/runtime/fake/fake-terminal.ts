import { constants } from "node:os";
import type { RunningCommand } from "@turnbox/core";
import type { ExecExit, TerminalExecution } from "../runtime.ts";

const CTRL_C = 3;

/** A fake command as if it were on a terminal: one output, and Ctrl-C ends it. */
export function createFakeTerminal(command: RunningCommand): TerminalExecution {
  let cause: "own" | "interrupted" | "killed" = "own";
  const outputs = [command.stdout, command.stderr];
  return {
    onOutput: (listener) => {
      for (const output of outputs) output.on("data", listener);
    },
    hold: () => {
      for (const output of outputs) output.pause();
    },
    release: () => {
      for (const output of outputs) output.resume();
    },
    write: (data) => {
      if (data.includes(CTRL_C)) {
        cause = "interrupted";
        command.kill();
      } else command.stdin.write(data);
    },
    resize: () => undefined,
    exit: command.exit.then((exit): ExecExit => {
      // A program that is told to end may well end by itself.
      if (cause === "interrupted") return { kind: "signaled", signal: constants.signals.SIGINT };
      return exit.kind === "exited" && cause === "own" ? exit : { kind: "killed" };
    }),
    kill: async () => {
      cause = "killed";
      command.kill();
      await command.ended;
    },
  };
}
