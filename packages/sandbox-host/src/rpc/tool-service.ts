import { create, type JsonObject } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { parseEnum } from "@turnbox/core";
import { principalOf } from "@turnbox/rpc/server";
import {
  type AttachToolCallResponse,
  AttachToolCallResponseSchema,
  type ExecuteToolRequest,
  ExecuteToolRequestSchema,
  type ExecuteToolStreamResponse,
  ExecuteToolStreamResponseSchema,
  OnDisconnect,
  type ToolService,
} from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import { CATALOG } from "../tool/catalog.ts";
import type { LedgerAnswer } from "../tool/ledger.ts";
import type { OutputJournal } from "../tool/output-journal.ts";
import { toWireResult } from "./convert.ts";
import type { Host } from "./host.ts";
import { withProgressForm } from "./progress-form.ts";
import {
  type CallEvent,
  parseLimits,
  parseOffset,
  parseSlowReader,
  streamCall,
  type StreamOptions,
} from "./tool-stream.ts";

const DISCONNECT: ReadonlyMap<number, "continue" | "kill"> = new Map([
  [OnDisconnect.UNSPECIFIED, "continue"],
  [OnDisconnect.CONTINUE, "continue"],
  [OnDisconnect.KILL, "kill"],
]);

/** ToolService: parse, run, convert; the stream is paced by its reader. */
export function createToolService(host: Host): Partial<ServiceImpl<typeof ToolService>> {
  const execute = async (
    request: ExecuteToolRequest,
    context: HandlerContext,
    onOutput?: (journal: OutputJournal) => void,
  ): Promise<LedgerAnswer> => {
    const session = host.registry.get(request.sessionId, principalOf(context));
    const onDisconnect = parseEnum("on_disconnect", request.onDisconnect, DISCONNECT);
    return await host.executeTool(session, {
      callId: request.toolCallId,
      toolName: request.toolName,
      parameters: request.params ?? {},
      stdin: request.stdin,
      expectedGeneration: request.expectedGeneration,
      onProgress: null,
      ...(onOutput === undefined ? {} : { onOutput }),
      limits: parseLimits(request.limits),
      ...(onDisconnect === "kill" ? { kill: context.signal } : {}),
    });
  };

  return {
    listTools: (request, context) => {
      if (request.sessionId !== "") host.registry.get(request.sessionId, principalOf(context));
      return {
        tools: CATALOG.map((tool) => ({
          name: tool.name,
          tier: tool.tier,
          description: tool.description,
          inputSchema: structuredClone(tool.schema) as unknown as JsonObject,
          aliases: [...tool.aliases],
          readOnly: tool.effect === "reads",
        })),
      };
    },

    executeTool: async (request, context) => {
      parseSlowReader(request.slowReader);
      return toWireResult(request.toolCallId, await execute(request, context));
    },

    async *executeToolStream(request, context): AsyncGenerator<ExecuteToolStreamResponse> {
      const call = request.call ?? create(ExecuteToolRequestSchema);
      const slowReader = parseSlowReader(call.slowReader);
      const reader = { ...readerOf(host, context), slowReader, from: { stdout: 0, stderr: 0 } };
      const events = streamCall({ ...reader, missing: "ignore" }, (tell) => execute(call, context, tell));
      for await (const event of events)
        yield withProgressForm(
          ExecuteToolStreamResponseSchema.field.progress,
          create(ExecuteToolStreamResponseSchema, { event: toWireEvent(call.toolCallId, event) }),
        );
    },

    async *attachToolCall(request, context): AsyncGenerator<AttachToolCallResponse> {
      const { toolCallId } = request;
      const session = host.registry.get(request.sessionId, principalOf(context));
      const from = {
        stdout: parseOffset("stdout_offset", request.stdoutOffset),
        stderr: parseOffset("stderr_offset", request.stderrOffset),
      };
      const reader = { ...readerOf(host, context), slowReader: parseSlowReader(request.slowReader), from };
      const events = streamCall({ ...reader, missing: "count" }, (tell) =>
        host.toolCalls.attach(session, toolCallId, tell),
      );
      for await (const event of events)
        yield withProgressForm(
          AttachToolCallResponseSchema.field.progress,
          create(AttachToolCallResponseSchema, { event: toWireEvent(toolCallId, event) }),
        );
    },

    cancelToolCall: async (request, context) => {
      const session = host.registry.get(request.sessionId, principalOf(context));
      return { wasRunning: await host.toolCalls.cancel(session, request.toolCallId, { signal: context.signal }) };
    },
  };
}

function readerOf({ clock }: Host, { signal }: HandlerContext): Pick<StreamOptions, "clock" | "signal"> {
  return { clock, signal };
}

function toWireEvent(toolCallId: string, event: CallEvent) {
  return event.kind === "progress"
    ? ({ case: "progress", value: event.progress } as const)
    : ({ case: "response", value: toWireResult(toolCallId, event.answer) } as const);
}
