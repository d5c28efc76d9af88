import { type CommandResult, type CommandRunner, hasReason, SandboxError } from "@turnbox/core";

/** Work on whole directory trees, done by the system's own programs: they know every kind of file and any depth. */
export interface Trees {
  /** Copies the content of a directory into an empty one, sharing blocks if the filesystem can. */
  copy(from: string, to: string, signal: AbortSignal): Promise<void>;
  /** Removes a tree, never what is mounted in it. A tree that is not there is gone. */
  remove(path: string, signal: AbortSignal): Promise<void>;
  /** Bytes that the tree takes on the disk. */
  measure(path: string, signal: AbortSignal): Promise<number>;
  /** Returns when what was written to the path's filesystem is on the disk. */
  flush(path: string, signal: AbortSignal): Promise<void>;
}

export function createTrees({
  runner,
  deadlineMs,
}: {
  readonly runner: CommandRunner;
  readonly deadlineMs: number;
}): Trees {
  const run = async (command: string, args: readonly string[], signal: AbortSignal): Promise<CommandResult> => {
    try {
      signal.throwIfAborted();
      const result = await runner.run({ command, args, cwd: "/", env: { LC_ALL: "C" }, deadlineMs }, { signal });
      if (result.exitCode === 0) return result;
      throw refusal(command, result.stderr);
    } catch (thrown) {
      if (signal.aborted) throw SandboxError.from(signal.reason);
      if (hasReason(thrown, "COMMAND_OUTCOME_UNKNOWN")) {
        throw new SandboxError("STORAGE_UNAVAILABLE", `${command} was not done: ${thrown.message}`, { cause: thrown });
      }
      throw thrown;
    }
  };
  return {
    copy: async (from, to, signal) => {
      await run("cp", ["--archive", "--reflink=auto", "--", `${from}/.`, to], signal);
    },
    remove: async (path, signal) => {
      await run("rm", ["-rf", "--one-file-system", "--", path], signal);
    },
    measure: async (path, signal) => {
      const { stdout } = await run("du", ["-s", "--block-size=1", "--", path], signal);
      return Number.parseInt(stdout, 10);
    },
    flush: async (path, signal) => {
      await run("sync", ["-f", "--", path], signal);
    },
  };
}

function refusal(command: string, stderr: string): SandboxError {
  const cause = new Error(stderr.slice(0, 2000));
  if (/no space left|quota exceeded/i.test(stderr)) return new SandboxError("POOL_FULL", "the disk is full", { cause });
  return new SandboxError("STORAGE_UNAVAILABLE", `${command} failed on the storage's directory`, { cause });
}
