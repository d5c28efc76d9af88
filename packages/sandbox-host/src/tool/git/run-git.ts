import { absolutePath, environmentOf } from "../../session/environment.ts";
import type { Session } from "../../session/session.ts";
import { readProgram } from "../../system/program.ts";
import type { Parameters } from "../parameters.ts";
import type { ToolResult } from "../result.ts";
import type { CommandCall, RunCommand } from "../run-command.ts";
import { gitArguments } from "./git-command.ts";
import type { GitToolName } from "./git-tools.ts";

export type RunGit = (
  session: Session,
  tool: GitToolName,
  call: CommandCall & { readonly parameters: Parameters },
) => Promise<ToolResult>;

/** As `git.sh` and every shell say it. */
const NOT_FOUND = 127;
const GIT_IS_MISSING = "There is no git in this sandbox. Make sandboxes from template debian, which has it.\n";

const SCRIPT = readProgram("git.sh");

/** Keeps git from waiting for input at a terminal. */
export const GIT_ENVIRONMENT: Readonly<Record<string, string>> = {
  GIT_TERMINAL_PROMPT: "0",
  GIT_PAGER: "cat",
  GIT_EDITOR: "true",
  SSH_ASKPASS: "",
  GIT_ASKPASS: "true",
};

/** What is executed for a call; the parameters have passed the catalog's schema. */
export function gitCommandLine(tool: GitToolName, parameters: Parameters): [string, ...string[]] {
  return ["bash", "-c", SCRIPT, "git", ...gitArguments(tool, parameters)];
}

/** Runs git inside the sandbox, never on the host: a repository's configuration may run programs. */
export function createRunGit({
  runCommand,
  toolTimeoutMs,
}: {
  readonly runCommand: RunCommand;
  readonly toolTimeoutMs: number;
}): RunGit {
  return async (session, tool, call) => {
    const { cwd } = call.parameters as { readonly cwd?: string };
    const result = await runCommand(session, call, {
      argv: gitCommandLine(tool, call.parameters),
      env: environmentOf(session.row.env, GIT_ENVIRONMENT),
      cwd: absolutePath(cwd ?? "."),
      deadlineMs: toolTimeoutMs,
    });
    const isMissing = result.exitCode === NOT_FOUND && result.content === "";
    return isMissing ? { ...result, content: GIT_IS_MISSING } : result;
  };
}
