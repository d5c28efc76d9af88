import { Readable, Writable } from "node:stream";
import type { Clock } from "@turnbox/client";
import { systemClock } from "@turnbox/client/internal";
import { launchEnvironment } from "./launch-environment.ts";
import { type Handle, type Launcher, STDERR_TAIL_BYTES } from "./launcher.ts";
import { startLocalProcess } from "./local-process.ts";
import { createOutputTail } from "./output-tail.ts";
import { orAborted, stopGently } from "./stop-gently.ts";

/** What a launcher of this machine is made with. */
export interface LocalLauncherOptions {
  /** Where programs start unless the spec says otherwise. */
  readonly root: string;
  readonly clock?: Clock;
}

/**
 * Starts programs on this machine, as this user: nothing keeps them in. They see the variables of the spec, a system PATH
 * and HOME, and nothing of this process's environment.
 */
export function createLocalLauncher({ root, clock = systemClock }: LocalLauncherOptions): Launcher {
  return {
    launch: async (spec, { signal } = {}): Promise<Handle> => {
      const cwd = spec.cwd ?? root;
      const running = await startLocalProcess(
        { command: spec.command, args: spec.args ?? [], env: launchEnvironment(spec), cwd },
        { clock, signal },
      );
      const { child, pid, exit } = running;
      const tail = createOutputTail(STDERR_TAIL_BYTES);
      child.stderr.on("data", (data: Buffer) => tail.add(data));
      const done = exit.then(() => undefined);
      const stop: Handle["stop"] = (options = {}) =>
        stopGently({ done, kill: async (name) => running.kill(name) }, { clock, signal: options.signal });
      return {
        pid,
        id: String(pid),
        cwd,
        stdin: Writable.toWeb(child.stdin),
        stdout: Readable.toWeb(child.stdout) as ReadableStream<Uint8Array>,
        stderr: async () => tail.text(),
        done,
        wait: (options = {}) => orAborted(exit, options.signal),
        stop,
        [Symbol.asyncDispose]: () => stop(),
      };
    },
  };
}
