import { type Clock, hasReason, SandboxError } from "@turnbox/core";
import { operationName } from "../../file/operation.ts";
import type { SessionFiles } from "../../file/session-files.ts";
import type { Session } from "../../session/session.ts";
import type { CallLimits } from "../call-limits.ts";
import { NotStarted } from "../ledger.ts";
import type { Parameters } from "../parameters.ts";
import type { ToolResult } from "../result.ts";
import type { TextOutcome } from "./outcome.ts";
import type { textTool } from "./text-tool.ts";
import type { TextToolName } from "./text-tools.ts";

export interface TextCall {
  readonly parameters: Parameters;
  readonly effect: "reads" | "writes";
  readonly kill: AbortSignal;
  readonly limits?: CallLimits;
}

/** Runs a file tool on the session's files, in a file worker. */
export type RunText = (session: Session, tool: TextToolName, call: TextCall) => Promise<ToolResult>;

const TEXT_TOOL = operationName<typeof textTool>("textTool");
const DEADLINE_MS = 30_000;
const NO_OUTPUT = { totalBytes: 0, truncatedBytes: 0 };

export function createRunText(deps: { readonly files: SessionFiles; readonly clock: Clock }): RunText {
  const { files, clock } = deps;
  return async (session, tool, { parameters, effect, kill, limits }) => {
    const startedMs = clock.monotonicMs();
    const { generation } = session.row;
    const deadlineMs = Math.min(DEADLINE_MS, limits?.timeoutMs ?? DEADLINE_MS);
    const toResult = (outcome: TextOutcome, exitReason: ToolResult["exitReason"]): ToolResult => ({
      ...outcome,
      exitCode: null,
      exitReason,
      stdout: NO_OUTPUT,
      stderr: NO_OUTPUT,
      durationMs: Math.round(clock.monotonicMs() - startedMs),
      tier: 1,
      generation,
      snapshotId: null,
    });
    try {
      const job = { input: { tool, parameters }, deadlineMs };
      const written = tool === "write_file" ? session.dirtyFlag.beginWrite() : undefined;
      const outcome = await files.run(session, TEXT_TOOL, job, { signal: kill });
      if (!outcome.isError) written?.();
      return toResult(outcome, "exited");
    } catch (thrown) {
      // Whether a write that was killed has happened is not known, so it has no result.
      if (effect === "reads" && hasReason(thrown, "DEADLINE_EXCEEDED"))
        return toResult(tooSlow(tool, deadlineMs), "timed_out");
      throw SandboxError.from(thrown).admitted === "no" ? new NotStarted("refused", { cause: thrown }) : thrown;
    }
  };
}

function tooSlow(tool: TextToolName, deadlineMs: number): TextOutcome {
  const advice = tool === "grep" ? "Name a smaller directory, or use a simpler pattern." : "Name a smaller directory.";
  return { content: `${tool} took longer than ${deadlineMs / 1000} s and was ended. ${advice}`, isError: true };
}
