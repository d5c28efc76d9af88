import { hasReason, type ProcessInfo, type SandboxFiles, type SandboxProcesses } from "@turnbox/client";
import { signalName } from "../launch/signal-name.ts";
import { createToolHost, type ToolHostOptions, type ToolTarget } from "./create-tool-host.ts";
import type { StartCommand } from "./terminals.ts";
import type { TerminalExit, ToolHost } from "./tool-host.ts";

/** What a tool host needs of a sandbox. */
export interface ToolSandbox {
  readonly files: Pick<SandboxFiles, "readStream" | "stat" | "write">;
  readonly processes: Pick<SandboxProcesses, "launch">;
}

/** A tool host whose files and commands are those of a sandbox. The root is /workspace unless given. */
export function createTurnboxToolHost(
  { files, processes }: ToolSandbox,
  { root = "/workspace", ...options }: Partial<ToolHostOptions> = {},
): ToolHost {
  const startCommand: StartCommand = async ({ command, args, env, cwd }, call) => {
    const process = await processes.launch(command, { args, env, cwd, ...call });
    return {
      output: process.output(),
      exit: process.wait().then(toExit),
      kill: async (options) => {
        await process.kill("SIGKILL", options);
      },
    };
  };

  const target: ToolTarget = {
    readLink: async (path, call) => {
      try {
        const { kind, linkTarget } = await files.stat(path, call);
        return kind === "symlink" ? linkTarget : undefined;
      } catch (thrown) {
        if (hasReason(thrown, "FILE_NOT_FOUND")) return undefined;
        throw thrown;
      }
    },
    readFile: (path, call) => files.readStream(path, call),
    writeFile: async (path, content, call) => {
      await files.write(path, content, call);
    },
    startCommand,
  };
  return createToolHost(target, { root, ...options });
}

function toExit({ exitCode, exitSignal = 0 }: ProcessInfo): TerminalExit {
  return { exitCode, signal: exitSignal === 0 ? undefined : signalName(exitSignal) };
}
