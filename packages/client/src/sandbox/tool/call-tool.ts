import { hasReason } from "@turnbox/core";
import type { ExecuteToolResponse } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import type { CallOptions } from "../call.ts";
import type { HostCalls } from "../host-call.ts";
import { DEFAULT_TIMEOUT_MS } from "../link/default-timeouts.ts";
import { cancelToolCall, type RunningCall } from "./run-tool-call.ts";

/**
 * The tools that only answer, and within seconds. Every other one may write output for as long as it likes, and is
 * followed as a stream, which breaks off at no deadline and goes on where it was.
 */
const ANSWERING: ReadonlySet<string> = new Set(["read_file", "write_file", "edit_file", "list_dir", "grep", "glob"]);

export const onlyAnswers = (toolName: string): boolean => ANSWERING.has(toolName);

/** Asks for a tool's answer in one call; a further attempt under its id joins the first one, or has its answer. */
export async function callTool(
  calls: HostCalls,
  request: RunningCall["request"],
  options: CallOptions,
): Promise<ExecuteToolResponse> {
  try {
    return await calls.call({ options, timeoutMs: DEFAULT_TIMEOUT_MS.tool }, ({ host }, { signal }) =>
      host.tools.executeTool(request, { signal }),
    );
  } catch (thrown) {
    if (hasReason(thrown, "CANCELLED", "DEADLINE_EXCEEDED")) await cancelToolCall(calls, request).catch(() => false);
    throw thrown;
  }
}
