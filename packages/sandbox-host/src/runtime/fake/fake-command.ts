import { PassThrough } from "node:stream";
import { finished } from "node:stream/promises";
import type { CommandExit, RunningCommand } from "@turnbox/core";
import type { ContainerSpec, ExecSpec } from "../runtime.ts";
import { type FakeProgram, toHostPath } from "./fake-program.ts";

const KILLED: CommandExit = { kind: "signaled", signal: "SIGKILL", deadline: "kept" };

export interface FakeCommandRequest {
  readonly program: FakeProgram;
  readonly container: ContainerSpec;
  readonly spec: Pick<ExecSpec, "argv" | "env" | "cwd">;
  breathe(): Promise<void>;
}

/** Runs a program in this process, in the shape of a child process. A program that throws has crashed: exit code 1. */
export function startFakeCommand({ program, container, spec, breathe }: FakeCommandRequest): RunningCommand {
  const stdin = new PassThrough();
  const stdout = new PassThrough();
  const stderr = new PassThrough();
  const killed = new AbortController();
  const streams = [stdin, stdout, stderr];
  for (const stream of streams) stream.on("error", () => undefined);

  const run = async (): Promise<CommandExit> => {
    try {
      const exitCode = await program({
        argv: spec.argv,
        env: spec.env,
        cwd: spec.cwd,
        stdin,
        stdout,
        stderr,
        signal: killed.signal,
        hostPath: (path) => toHostPath(container.rootPath, spec.cwd, path),
        breathe,
      });
      return { kind: "exited", exitCode };
    } catch (thrown) {
      stderr.write(`${String(thrown)}\n`);
      return { kind: "exited", exitCode: 1 };
    }
  };
  const death = new Promise<CommandExit>((resolve) => {
    killed.signal.addEventListener("abort", () => {
      resolve(KILLED);
    });
  });
  const ended = Promise.race([run(), death]).then((exit) => {
    stdin.destroy();
    stdout.end();
    stderr.end();
    return exit;
  });
  const exit = ended.then(async (result) => {
    await Promise.all([finished(stdout), finished(stderr)]).catch(() => undefined);
    return result;
  });
  return {
    pid: 0,
    stdin,
    stdout,
    stderr,
    ended,
    exit,
    kill: () => {
      killed.abort();
    },
  };
}
