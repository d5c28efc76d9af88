import { type Clock, SandboxError } from "@turnbox/client";
import { invalidArgument } from "@turnbox/client/internal";
import type { ToolProgress, ToolRequest, ToolResponse } from "../execution-environment.ts";
import type { ToolOutcome } from "./outcome.ts";
import { TOOL_SCHEMAS, type ToolName, type ToolParams } from "./tool-schemas.ts";

export interface ToolCall {
  readonly signal: AbortSignal;
  readonly timeoutMs: number | undefined;
  readonly onProgress: (progress: ToolProgress) => void;
}

/** The tools of a kind of environment, on what it works in. */
export type ToolSet<Target> = {
  readonly [Name in ToolName]: (target: Target, params: ToolParams<Name>, call: ToolCall) => Promise<ToolOutcome>;
};

const isToolName = (name: string): name is ToolName => Object.hasOwn(TOOL_SCHEMAS, name);

/** Runs a tool with checked parameters. */
export async function runTool<Target>(
  tools: ToolSet<Target>,
  target: Target,
  { request, call, clock }: { readonly request: ToolRequest; readonly call: ToolCall; readonly clock: Clock },
): Promise<ToolResponse> {
  const { toolName, toolCallId, params } = request;
  if (!isToolName(toolName)) {
    const known = Object.keys(TOOL_SCHEMAS).join(", ");
    throw new SandboxError("TOOL_NOT_FOUND", `no tool ${JSON.stringify(toolName)}; there are ${known}`);
  }
  // The schema of the same name has just said what the parameters are.
  const run = tools[toolName] as (target: Target, params: unknown, call: ToolCall) => Promise<ToolOutcome>;
  const startedMs = clock.monotonicMs();
  const { content, isError, exitCode, exitReason } = await run(target, checkParams(toolName, params), call);
  return {
    toolCallId,
    content,
    blocks: [{ type: "text", text: content }],
    isError,
    exitCode,
    exitReason: exitReason ?? "exited",
    snapshotId: undefined,
    durationMs: Math.round(clock.monotonicMs() - startedMs),
    tier: toolName === "bash" ? 2 : 1,
    generation: 1,
    replayed: false,
  };
}

function checkParams(toolName: ToolName, params: unknown): unknown {
  const parsed = TOOL_SCHEMAS[toolName].safeParse(params);
  if (parsed.success) return parsed.data;
  const [issue] = parsed.error.issues;
  throw invalidArgument(["params", ...(issue?.path ?? [])].join("."), issue?.message ?? "is not valid");
}
