import type { CommandRunner } from "@turnbox/core";
import type { InputStream } from "../surroundings.ts";

const STTY_MS = 2000;

/** What is used of the program's own stdin. */
export interface OwnInput extends AsyncIterable<string | Uint8Array> {
  readonly isTTY?: boolean;
  setRawMode?(raw: boolean): unknown;
}

/**
 * The program's own stdin. Node's raw mode still makes every line end two characters on the way out, which would damage
 * what full-screen programs draw; on Linux that is switched off too. Leaving raw mode brings everything back, and so does
 * the end of the program by whatever way but SIGKILL.
 */
export function createTerminalInput(stdin: OwnInput, runner: CommandRunner): InputStream {
  return {
    isTTY: stdin.isTTY === true,
    [Symbol.asyncIterator]: () => stdin[Symbol.asyncIterator](),
    setRawMode: async (raw) => {
      stdin.setRawMode?.(raw);
      if (!raw || stdin.isTTY !== true) return;
      const args = ["-F", `/proc/${String(process.pid)}/fd/0`, "-opost"];
      // Where it cannot be done, line ends are doubled, and nothing else is wrong.
      await runner.run({ command: "stty", args, deadlineMs: STTY_MS }).catch(() => undefined);
    },
  };
}
