import { type Clock, hasReason, SandboxError } from "@turnbox/core";
import type { Logger } from "pino";
import type { Containers } from "../container/container.ts";
import type { ExecExit, ExecSpec, Execution, Runtime } from "../runtime/runtime.ts";
import { assertGeneration } from "../session/generation.ts";
import type { Session } from "../session/session.ts";
import { type CallLimits, limitedSpec } from "./call-limits.ts";
import { NotStarted } from "./ledger.ts";
import { type Captured, captureOutput, fitOutputs, type Progress, textOf } from "./output/capture.ts";
import type { ExitReason, ToolResult } from "./result.ts";

export interface CommandCall {
  readonly stdin: Uint8Array;
  readonly expectedGeneration: number | undefined;
  readonly onProgress: ((progress: Progress) => Promise<void>) | null;
  /** Aborts to kill the call with everything that it started. */
  readonly kill: AbortSignal;
  readonly limits?: CallLimits;
}

/** Runs a command in the session's resident container. A command that fails is a result; only the sandbox can fail. */
export type RunCommand = (session: Session, call: CommandCall, spec: ExecSpec) => Promise<ToolResult>;

export function createRunCommand(deps: {
  readonly runtime: Runtime;
  readonly containers: Containers;
  readonly clock: Clock;
  readonly log: Logger;
  /** How much of each output the result keeps. */
  readonly keepBytes: number;
}): RunCommand {
  const { runtime, containers, clock } = deps;
  return async (session, call, spec) => {
    const startedMs = clock.monotonicMs();
    const execution = await start(session, call, limitedSpec(spec, call.limits ?? {}));
    const { generation } = session.row;
    const onKill = (): void => {
      execution.kill().catch((thrown: unknown) => {
        // The runtime may have ended the container; the next call examines it.
        containers.suspect(session);
        deps.log.error({ err: thrown, sessionId: session.row.id }, "a tool could not be killed");
      });
    };
    call.kill.addEventListener("abort", onKill, { once: true });
    if (call.kill.aborted) onKill();
    try {
      execution.stdin.on("error", () => undefined);
      execution.stdin.end(call.stdin);
      const keepBytes = call.limits?.outputBytes ?? deps.keepBytes;
      const output = await captureOutput(execution, { keepBytes, onProgress: call.onProgress });
      const exit = await execution.exit;
      if (exit.kind === "sandbox_lost" || exit.kind === "oom") containers.suspect(session);
      return toResult({ exit, output, generation, durationMs: clock.monotonicMs() - startedMs });
    } finally {
      call.kill.removeEventListener("abort", onKill);
    }
  };

  /** Starts the command; in a new container if the old one is dead. What fails here had no effect. */
  async function start(session: Session, call: CommandCall, spec: ExecSpec): Promise<Execution> {
    const exec = { isAsked: false };
    const attempt = async (): Promise<Execution> => {
      const container = await containers.ensure(session, { signal: call.kill });
      assertGeneration(session, call.expectedGeneration);
      exec.isAsked = true;
      return await runtime.exec(container, spec, { signal: call.kill });
    };
    try {
      return await attempt().catch(async (thrown: unknown) => {
        // A container that is frozen or dead; `ensure` thaws or replaces it.
        if (!hasReason(thrown, "SANDBOX_LOST", "INVALID_STATE")) throw thrown;
        containers.suspect(session);
        return await attempt();
      });
    } catch (cause) {
      throw !exec.isAsked || SandboxError.from(cause).admitted === "no" || hasReason(cause, "SANDBOX_LOST")
        ? new NotStarted("refused", { cause })
        : cause;
    }
  }
}

function toResult(ended: {
  readonly exit: ExecExit;
  readonly output: Readonly<Record<"stdout" | "stderr", Captured>>;
  readonly generation: number;
  readonly durationMs: number;
}): ToolResult {
  const { stdout, stderr } = fitOutputs(ended.output);
  const { exitCode, exitReason } = endOf(ended.exit);
  return {
    content: contentOf(stdout, stderr, ended.exit),
    isError: exitCode !== 0,
    exitCode,
    exitReason,
    stdout: { totalBytes: stdout.totalBytes, truncatedBytes: stdout.totalBytes - stdout.bytes.length },
    stderr: { totalBytes: stderr.totalBytes, truncatedBytes: stderr.totalBytes - stderr.bytes.length },
    durationMs: Math.round(ended.durationMs),
    tier: 2,
    generation: ended.generation,
    snapshotId: null,
  };
}

/** The exit code follows the shell's custom: 124 after a timeout, 128 + n after signal n. */
function endOf(exit: ExecExit): { readonly exitCode: number | null; readonly exitReason: ExitReason } {
  switch (exit.kind) {
    case "exited":
      return { exitCode: exit.exitCode, exitReason: "exited" };
    case "signaled":
      return { exitCode: 128 + exit.signal, exitReason: "killed" };
    case "timed_out":
      return { exitCode: 124, exitReason: "timed_out" };
    case "killed":
      return { exitCode: 137, exitReason: "killed" };
    case "oom":
      return { exitCode: 137, exitReason: "oom" };
    case "sandbox_lost":
      return { exitCode: null, exitReason: "sandbox_lost" };
  }
}

const NOTES: Readonly<Partial<Record<ExecExit["kind"], string>>> = {
  timed_out: "[the command ran into its timeout and was killed]",
  killed: "[the command was killed]",
  oom: "[the sandbox ran out of memory and was killed]",
  sandbox_lost: "[the sandbox died]",
};

/** Standard output, then standard error, then a note on how the command ended. */
function contentOf(stdout: Captured, stderr: Captured, exit: ExecExit): string {
  const part = (captured: Captured, name: string): string => {
    const dropped = captured.totalBytes - captured.bytes.length;
    return dropped === 0 ? textOf(captured) : `${textOf(captured)}\n[${dropped} more bytes of ${name} are not shown]`;
  };
  const parts = [part(stdout, "stdout"), part(stderr, "stderr"), NOTES[exit.kind] ?? ""];
  return parts
    .filter((text) => text !== "")
    .reduce((text, next) => (text === "" || text.endsWith("\n") ? text + next : `${text}\n${next}`), "");
}
