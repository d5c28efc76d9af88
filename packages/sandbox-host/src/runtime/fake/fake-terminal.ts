import { constants } from "node:os";
import type { RunningCommand } from "@turnbox/core";
import type { TerminalExecution, TerminalExit } from "../runtime.ts";

const CTRL_C = 3;

/** A fake command as if it were on a terminal: one output, and Ctrl-C ends it. */
export function createFakeTerminal(command: RunningCommand): TerminalExecution {
  let cause: "own" | "interrupted" | "killed" = "own";
  const { stdin } = command;
  const outputs = [command.stdout, command.stderr];
  const interrupt = (): void => {
    cause = "interrupted";
    command.kill();
  };
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
    write: async (data) => {
      const room = stdin.destroyed ? 0 : stdin.writableHighWaterMark - stdin.writableLength;
      const taken = data.subarray(0, Math.max(0, room));
      if (taken.includes(CTRL_C)) interrupt();
      else stdin.write(taken);
      // A program that reads has done so by the next turn.
      await new Promise((resolve) => setImmediate(resolve));
      return taken.length;
    },
    signal: (signal) => {
      if (signal === constants.signals.SIGINT) interrupt();
    },
    resize: () => undefined,
    exit: command.exit.then((exit): TerminalExit => {
      // A program that gets a signal to end may well end by itself.
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
