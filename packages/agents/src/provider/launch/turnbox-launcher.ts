import {
  type Clock,
  type ProcessInfo,
  SandboxError,
  type SandboxFiles,
  type SandboxProcess,
  type SandboxProcesses,
} from "@turnbox/client";
import { randomToken, systemClock } from "@turnbox/client/internal";
import { launchEnvironment } from "./launch-environment.ts";
import type { Handle, Launcher, LaunchExit } from "./launcher.ts";
import { createStderrFile } from "./stderr-file.ts";
import { signalName } from "./signal-name.ts";
import { orAborted, stopGently } from "./stop-gently.ts";

/** What a launcher needs of a sandbox. */
export interface LaunchingSandbox {
  readonly files: Pick<SandboxFiles, "read" | "remove" | "stat">;
  readonly processes: Pick<SandboxProcesses, "launch">;
}

/** What a launcher in a sandbox is made with. */
export interface TurnboxLauncherOptions {
  /** Where programs start unless the spec says otherwise; /workspace unless given. */
  readonly root?: string;
  readonly clock?: Clock;
}

/**
 * A process has one journal for both streams, and a protocol on standard output needs its own: the shell sends standard
 * error to a file and becomes the program, so that signals reach it.
 */
const APART = 'log=$1; shift; exec "$@" 2>>"$log"';
const ID_CHARS = 12;

/**
 * Starts programs in a sandbox. A program goes on over dropped connections and restarts of the host's service; its input
 * and output go on where they were.
 */
export function createTurnboxLauncher(
  sandbox: LaunchingSandbox,
  { root = "/workspace", clock = systemClock }: TurnboxLauncherOptions = {},
): Launcher {
  return {
    launch: async (spec, { signal } = {}): Promise<Handle> => {
      const cwd = spec.cwd ?? root;
      const stderr = createStderrFile(sandbox.files, `/tmp/.turnbox-${randomToken(ID_CHARS)}.stderr`);
      const process = await sandbox.processes.launch("/bin/sh", {
        args: ["-c", APART, "sh", stderr.path, spec.command, ...(spec.args ?? [])],
        env: launchEnvironment(spec),
        cwd,
        ...(signal === undefined ? {} : { signal }),
      });
      const over = new AbortController();
      const exit = process.wait({ signal: over.signal }).then(toExit);
      const ended = exit.catch(() => undefined);
      const done = ended.then(() => stderr.settle());
      const kill = async (name: "SIGTERM" | "SIGKILL"): Promise<void> => {
        await process.kill(name).catch(goneIsEnded);
      };
      const stop: Handle["stop"] = (options = {}) => stopGently({ done, kill }, { clock, signal: options.signal });
      return {
        pid: 0,
        id: process.id,
        cwd,
        stdin: inputOf(process, over.signal),
        stdout: outputOf(process, over.signal),
        stderr: stderr.tail,
        done,
        wait: (options = {}) => orAborted(exit, options.signal),
        stop,
        [Symbol.asyncDispose]: async () => {
          await stop();
          over.abort(new SandboxError("CANCELLED", "the program was let go"));
        },
      };
    },
  };
}

function toExit(info: ProcessInfo): LaunchExit {
  const { exitCode, exitSignal = 0, exitReason } = info;
  return {
    exitCode,
    signal: exitSignal === 0 ? undefined : signalName(exitSignal),
    reason: exitReason === "exited" || exitReason === "signaled" ? undefined : exitReason,
  };
}

/** With the sandbox, or its generation, the process is gone. */
function goneIsEnded(thrown: unknown): void {
  const { reason } = SandboxError.from(thrown);
  const isGone = /^(PROCESS|SESSION|SANDBOX)_(NOT_FOUND|LOST|DESTROYING)$/.test(reason);
  if (!isGone) throw thrown;
}

/** A process's input. Each write is over when the host has accepted it, whatever happens to connections meanwhile. */
function inputOf(process: SandboxProcess, signal: AbortSignal): WritableStream<Uint8Array> {
  const closeInput = () => process.closeInput({ signal });
  return new WritableStream<Uint8Array>({
    write: (data) => process.write(data, { signal }),
    close: closeInput,
    abort: closeInput,
  });
}

/** A process's output from its first byte on. A gap breaks it: what reads it cannot tell where a message begins. */
function outputOf(process: SandboxProcess, signal: AbortSignal): ReadableStream<Uint8Array> {
  const cancelled = new AbortController();
  const output = process.output({ signal: AbortSignal.any([signal, cancelled.signal]) })[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      const next = await output.next();
      if (next.done === true) controller.close();
      else if (next.value.droppedBytes > 0) throw lost(next.value.droppedBytes);
      else controller.enqueue(next.value.data);
    },
    cancel: (reason) => {
      cancelled.abort(reason);
    },
  });
}

const lost = (bytes: number): SandboxError =>
  new SandboxError("OUTCOME_UNKNOWN", `${bytes} bytes of output were dropped before they were read`);
