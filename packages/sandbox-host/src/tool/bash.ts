import { createHash } from "node:crypto";
import { invalidArgument } from "@turnbox/core";
import { absolutePath, environmentOf } from "../session/environment.ts";
import type { Session } from "../session/session.ts";
import { DEFAULT_BASH_TIMEOUT_MS } from "./bash-tool.ts";
import { NotStarted } from "./ledger.ts";
import type { Parameters } from "./parameters.ts";
import type { ToolResult } from "./result.ts";
import type { CommandCall, RunCommand } from "./run-command.ts";

export interface BashCall extends CommandCall {
  readonly callId: string;
  readonly parameters: Parameters;
}

export type RunBash = (session: Session, call: BashCall) => Promise<ToolResult>;

interface BashParameters {
  readonly cmd: string;
  readonly cwd?: string;
  readonly env?: Readonly<Record<string, string>>;
  readonly timeout_ms?: number;
  readonly background?: boolean;
}

/** Starts the command and leaves it alone: it has no input, and no end of a shell signals it. */
const BACKGROUND_SCRIPT = `bash -c "$1" </dev/null >"$2" 2>&1 &
printf 'Process %s runs in the background. Its output goes to %s.\\n' "$!" "$2"`;
const START_TIMEOUT_MS = 10_000;

/** Runs a command with bash. */
export function createRunBash(deps: {
  readonly runCommand: RunCommand;
  /** The bound of a call that names none. */
  readonly toolTimeoutMs: number;
}): RunBash {
  return async (session, call) => {
    const { cmd, cwd, env, timeout_ms: timeoutMs, background } = call.parameters as unknown as BashParameters;
    const around = { env: environmentOf(session.row.env, env ?? {}), cwd: absolutePath(cwd ?? ".") };
    if (background !== true) {
      const deadlineMs = timeoutMs ?? call.limits?.timeoutMs ?? Math.min(DEFAULT_BASH_TIMEOUT_MS, deps.toolTimeoutMs);
      return await deps.runCommand(session, call, { ...around, argv: ["bash", "-c", cmd], deadlineMs });
    }
    assertForBackground(call);
    return await deps.runCommand(session, call, {
      ...around,
      argv: ["bash", "-c", BACKGROUND_SCRIPT, "bash", cmd, outputPathOf(call.callId)],
      deadlineMs: START_TIMEOUT_MS,
    });
  };
}

function assertForBackground({ parameters, stdin }: BashCall): void {
  const problem =
    parameters["timeout_ms"] !== undefined
      ? invalidArgument("params.timeout_ms", "has no meaning together with background")
      : stdin.length > 0
        ? invalidArgument("stdin", "a command in the background has none")
        : null;
  if (problem !== null) throw new NotStarted("refused", { cause: problem });
}

/** Call ids may hold anything printable, slashes too. */
function outputPathOf(callId: string): string {
  return `/tmp/turnbox-bg-${createHash("sha256").update(callId).digest("hex").slice(0, 16)}.log`;
}
