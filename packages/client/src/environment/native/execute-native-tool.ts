import type { JsonObject } from "@bufbuild/protobuf";
import { OnDisconnect, SlowReader } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import type { HostCalls } from "../../sandbox/host-call.ts";
import { runToolCall } from "../../sandbox/tool/run-tool-call.ts";
import { toToolResult } from "../../sandbox/tool/to-tool-result.ts";
import { toWireDuration } from "../../sandbox/wire/time.ts";
import type { ToolProgress, ToolRequest, ToolResponse } from "../execution-environment.ts";

/** Runs a tool by the stream call. What `onProgress` throws ends the call on the host too. */
export async function executeNativeTool(
  calls: HostCalls,
  { toolName, toolCallId, params, timeoutMs }: ToolRequest,
  { onProgress, signal }: { readonly onProgress: (progress: ToolProgress) => void; readonly signal: AbortSignal },
): Promise<ToolResponse> {
  const leaving = new AbortController();
  let failure: { readonly thrown: unknown } | undefined;
  const request = {
    sessionId: calls.sessionId,
    toolCallId,
    toolName,
    params: params as JsonObject,
    onDisconnect: OnDisconnect.CONTINUE,
    slowReader: SlowReader.WAIT,
    ...(timeoutMs === undefined ? {} : { limits: { timeout: toWireDuration("timeoutMs", timeoutMs) } }),
  };
  const onChunk = async (chunk: ToolProgress): Promise<void> => {
    try {
      onProgress(chunk);
    } catch (thrown) {
      failure ??= { thrown };
      leaving.abort();
    }
  };
  try {
    const options = { signal: AbortSignal.any([signal, leaving.signal]) };
    return toToolResult(await runToolCall(calls, { request, onChunk }, options));
  } catch (thrown) {
    throw failure === undefined ? thrown : failure.thrown;
  }
}
