import { randomUUID } from "node:crypto";
import type { JsonObject } from "@bufbuild/protobuf";
import { type ExecuteToolResponse, OnDisconnect, SlowReader } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import { hasReason } from "@turnbox/core";
import type { HostCalls } from "../host-call.ts";
import { DEFAULT_TIMEOUT_MS } from "../link/default-timeouts.ts";
import type { Sandbox } from "../sandbox.ts";
import { toJsonObject } from "../wire/json.ts";
import { toWireCount, toWireGeneration } from "../wire/number.ts";
import { toWireDuration } from "../wire/time.ts";
import type { CallOptions } from "../call.ts";
import { createToolDefinitions } from "./create-tool-definitions.ts";
import { cancelToolCall, type RunningCall } from "./run-tool-call.ts";
import { toToolResult } from "./to-tool-result.ts";
import { startBashStream, startToolStream } from "./tool-stream.ts";
import type { BashOptions, CallLimits, ToolOptions } from "./tool-call.ts";

const ON_DISCONNECT = { continue: OnDisconnect.CONTINUE, kill: OnDisconnect.KILL } as const;
const SLOW_READER = { wait: SlowReader.WAIT, drop: SlowReader.DROP } as const;

type ToRequest = (
  toolName: string,
  params: Readonly<Record<string, unknown>>,
  options: ToolOptions,
) => RunningCall["request"];

export type SandboxTools = Pick<Sandbox, "bash" | "bashStream" | "tool" | "toolStream" | "tools">;

export function createTools(calls: HostCalls): SandboxTools {
  const { sessionId } = calls;
  const bashStream: Sandbox["bashStream"] = (command, options = {}) =>
    startBashStream(
      calls,
      toRequest({ sessionId, toolName: "bash", params: toBashParams(command, options) }, options),
      options,
    );
  const toToolRequest: ToRequest = (toolName, params, options) =>
    toRequest({ sessionId, toolName, params: toJsonObject("params", params) }, options);
  const toolStream: Sandbox["toolStream"] = (toolName, params, options = {}) =>
    startToolStream(calls, toToolRequest(toolName, params, options), options);
  return {
    bashStream,
    toolStream,
    bash: async (command, options) => await bashStream(command, options).result(),
    tool: async (name, params, options = {}) =>
      onlyAnswers(name)
        ? toToolResult(await callTool(calls, toToolRequest(name, params, options), options))
        : await toolStream(name, params, options).result(),
    tools: async (options) => {
      const { tools } = await calls.call({ options, timeoutMs: DEFAULT_TIMEOUT_MS.read }, ({ host }, { signal }) =>
        host.tools.listTools({ sessionId }, { signal }),
      );
      return createToolDefinitions(tools);
    },
  };
}

const toBashParams = (cmd: string, { cwd, env }: BashOptions): JsonObject => ({
  cmd,
  ...(cwd === undefined ? {} : { cwd }),
  ...(env === undefined ? {} : { env: { ...env } }),
});

function toRequest(
  call: { readonly sessionId: string; readonly toolName: string; readonly params: JsonObject },
  options: ToolOptions,
): RunningCall["request"] {
  const { toolCallId = randomUUID(), expectedGeneration, stdin, limits, onDisconnect, slowReader } = options;
  return {
    ...call,
    toolCallId,
    onDisconnect: ON_DISCONNECT[onDisconnect ?? "continue"],
    slowReader: SLOW_READER[slowReader ?? "wait"],
    ...toWireGeneration(expectedGeneration),
    ...(stdin === undefined ? {} : { stdin: typeof stdin === "string" ? Buffer.from(stdin) : stdin }),
    ...(limits === undefined ? {} : { limits: toWireLimits(limits) }),
  };
}

const toWireLimits = ({ timeoutMs, memoryBytes, outputBytes }: CallLimits) => ({
  ...(timeoutMs === undefined ? {} : { timeout: toWireDuration("limits.timeoutMs", timeoutMs) }),
  memoryBytes: toWireCount("limits.memoryBytes", memoryBytes),
  outputBytes: toWireCount("limits.outputBytes", outputBytes),
});

/**
 * The tools that only answer, and within seconds. Every other one may write output for as long as it likes, and is
 * followed as a stream, which breaks off at no deadline and goes on where it was.
 */
const ANSWERING: ReadonlySet<string> = new Set(["read_file", "write_file", "edit_file", "list_dir", "grep", "glob"]);

const onlyAnswers = (toolName: string): boolean => ANSWERING.has(toolName);

/** Asks for a tool's answer in one call; a further attempt under its id joins the first one, or has its answer. */
async function callTool(
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
