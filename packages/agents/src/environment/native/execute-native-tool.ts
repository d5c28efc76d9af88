import type { HostSession } from "@turnbox/client";
import type { ToolProgress, ToolRequest, ToolResponse } from "../execution-environment.ts";

/** Runs a tool by the stream call. What `onProgress` throws ends the call on the host too. */
export async function executeNativeTool(
  session: HostSession,
  { toolName, toolCallId, params, timeoutMs }: ToolRequest,
  { onProgress, signal }: { readonly onProgress: (progress: ToolProgress) => void; readonly signal: AbortSignal },
): Promise<ToolResponse> {
  const limits = timeoutMs === undefined ? {} : { limits: { timeoutMs } };
  const running = session.toolStream(toolName, params, { toolCallId, ...limits, signal });
  for await (const chunk of running) onProgress(chunk);
  return await running.result();
}
