import { constants } from "node:os";
import type { Readable } from "node:stream";
import { type CommandExit, hasErrno } from "@turnbox/client/internal";
import type { ToolProgress } from "../execution-environment.ts";
import { type CommandEnd, toCommandOutcome } from "../tool/command-outcome.ts";
import { DEFAULT_BASH_TIMEOUT_MS, KEEP_BYTES } from "../tool/tool-schemas.ts";
import type { ToolCall, ToolSet } from "../tool/tool-set.ts";
import { resolveInside } from "./inside.ts";
import type { LocalTarget } from "./local-target.ts";

/** Runs a command on this machine with the rights of this process. What it starts in the background ends with it. */
export const runLocalBash: ToolSet<LocalTarget>["bash"] = async (target, params, call) => {
  const { path } = await resolveInside(target.root, params.cwd);
  const command = await target.runner.start(
    {
      command: "bash",
      // Its input is a socket, which bash takes for a remote login: it would read a startup file of the directory.
      args: ["--norc", "-c", params.cmd],
      cwd: path,
      env: { ...target.env, ...params.env },
      deadlineMs: params.timeout_ms ?? call.timeoutMs ?? DEFAULT_BASH_TIMEOUT_MS,
    },
    { signal: call.signal },
  );
  command.stdin.end();
  const endGroup = (): void => {
    killGroup(command.pid);
  };
  command.ended.then(endGroup, endGroup);
  try {
    const outputs = await Promise.all([drain(command.stdout, "stdout", call), drain(command.stderr, "stderr", call)]);
    const exit = await command.exit;
    call.signal.throwIfAborted();
    return toCommandOutcome(outputs, endOf(exit));
  } finally {
    command.kill();
  }
};

/** What the command left running holds its outputs open, and is not ended later. */
function killGroup(pid: number): void {
  try {
    process.kill(-pid, "SIGKILL");
  } catch {
    // It left nothing.
  }
}

async function drain(source: Readable, stream: ToolProgress["stream"], { onProgress }: ToolCall): Promise<string> {
  const kept: Buffer[] = [];
  let keptBytes = 0;
  let offset = 0;
  try {
    for await (const data of source as AsyncIterable<Buffer>) {
      onProgress({ stream, data, offset, droppedBytes: 0 });
      offset += data.length;
      const part = data.subarray(0, KEEP_BYTES - keptBytes);
      kept.push(part);
      keptBytes += part.length;
    }
  } catch (thrown) {
    // The outputs of a killed command are cut off if another process holds them.
    if (!hasErrno(thrown, "ERR_STREAM_PREMATURE_CLOSE")) throw thrown;
  }
  const text = Buffer.concat(kept).toString();
  return offset === keptBytes ? text : `${text}\n[${String(offset - keptBytes)} more bytes of ${stream} are not shown]`;
}

function endOf(exit: CommandExit): CommandEnd {
  if (exit.kind === "exited") return exit;
  return exit.deadline === "passed"
    ? { kind: "timed_out" }
    : { kind: "killed", signal: constants.signals[exit.signal] };
}
