import type { Clock, Sandbox, ToolResult } from "@turnbox/client";
import { createOutputTail, type ProgressReport, withProgress } from "./progress.ts";

export interface HostCall {
  readonly sandbox: Sandbox;
  readonly name: string;
  readonly params: Readonly<Record<string, unknown>>;
  readonly toolCallId: string;
  readonly clock: Clock;
  /** Cancels the call in the sandbox too. */
  readonly signal: AbortSignal;
  /** Present if the client asked for it. */
  readonly report?: (report: ProgressReport) => Promise<void>;
}

/** Calls a tool of the sandbox's catalog. */
export async function callHostTool(call: HostCall): Promise<ToolResult> {
  const { sandbox, name, params, toolCallId, signal, clock, report } = call;
  if (report === undefined) return await sandbox.tool(name, params, { toolCallId, signal });
  const stream = sandbox.toolStream(name, params, { toolCallId, signal });
  const tail = createOutputTail();
  const work = async (): Promise<ToolResult> => {
    for await (const chunk of stream) tail.push(chunk);
    return await stream.result();
  };
  return await withProgress(work(), { clock, report, message: tail.lastLine });
}
