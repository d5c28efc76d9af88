import { create, type JsonObject } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { type Clock, parseEnum } from "@turnbox/core";
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
import type { ExecuteTool } from "../tool/execute.ts";
import type { LedgerAnswer } from "../tool/ledger.ts";
import type { OutputJournal } from "../tool/output/journal.ts";
import type { ToolCalls } from "../tool/tool-calls.ts";
import { type FindsSessions, findSession } from "./call.ts";
import { toWireResult } from "./convert.ts";
import {
  type CallEvent,
  parseLimits,
  parseOffset,
  parseSlowReader,
  streamCall,
  type StreamOptions,
} from "./tool-stream.ts";

/** What ToolService needs. */
export interface ToolServiceParts extends FindsSessions {
  readonly executeTool: ExecuteTool;
  readonly toolCalls: ToolCalls;
  readonly clock: Clock;
}

type Handlers = ServiceImpl<typeof ToolService>;

const DISCONNECT: ReadonlyMap<number, "continue" | "kill"> = new Map([
  [OnDisconnect.UNSPECIFIED, "continue"],
  [OnDisconnect.CONTINUE, "continue"],
  [OnDisconnect.KILL, "kill"],
]);

/** ToolService: parse, run, convert; the stream is paced by its reader. */
export function createToolService(host: ToolServiceParts): Partial<Handlers> {
  return {
    listTools: (request, context) => {
      if (request.sessionId !== "") findSession(host, request.sessionId, context);
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
      return toWireResult(request.toolCallId, await execute(host, request, context));
    },
    executeToolStream: executeToolStream(host),
    attachToolCall: attachToolCall(host),
    cancelToolCall: async (request, context) => {
      const session = findSession(host, request.sessionId, context);
      return { wasRunning: await host.toolCalls.cancel(session, request.toolCallId, { signal: context.signal }) };
    },
  };
}

async function execute(
  host: ToolServiceParts,
  request: ExecuteToolRequest,
  context: HandlerContext,
  onOutput?: (journal: OutputJournal) => void,
): Promise<LedgerAnswer> {
  const session = findSession(host, request.sessionId, context);
  const onDisconnect = parseEnum("on_disconnect", request.onDisconnect, DISCONNECT);
  return await host.executeTool(session, {
    callId: request.toolCallId,
    toolName: request.toolName,
    parameters: request.params ?? {},
    stdin: request.stdin,
    expectedGeneration: request.expectedGeneration,
    ...(onOutput === undefined ? {} : { onOutput }),
    limits: parseLimits(request.limits),
    ...(onDisconnect === "kill" ? { kill: context.signal } : {}),
  });
}

function executeToolStream(host: ToolServiceParts): Handlers["executeToolStream"] {
  return async function* (request, context): AsyncGenerator<ExecuteToolStreamResponse> {
    const call = request.call ?? create(ExecuteToolRequestSchema);
    const slowReader = parseSlowReader(call.slowReader);
    const reader = { ...readerOf(host, context), slowReader, from: { stdout: 0, stderr: 0 } };
    const events = streamCall({ ...reader, missing: "ignore" }, (onOutput) => execute(host, call, context, onOutput));
    for await (const event of events)
      yield create(ExecuteToolStreamResponseSchema, { event: toWireEvent(call.toolCallId, event) });
  };
}

function attachToolCall(host: ToolServiceParts): Handlers["attachToolCall"] {
  return async function* (request, context): AsyncGenerator<AttachToolCallResponse> {
    const { toolCallId } = request;
    const session = findSession(host, request.sessionId, context);
    const from = {
      stdout: parseOffset("stdout_offset", request.stdoutOffset),
      stderr: parseOffset("stderr_offset", request.stderrOffset),
    };
    const reader = { ...readerOf(host, context), slowReader: parseSlowReader(request.slowReader), from };
    const events = streamCall({ ...reader, missing: "count" }, (onOutput) =>
      host.toolCalls.attach(session, toolCallId, onOutput),
    );
    for await (const event of events)
      yield create(AttachToolCallResponseSchema, { event: toWireEvent(toolCallId, event) });
  };
}

function readerOf({ clock }: ToolServiceParts, { signal }: HandlerContext): Pick<StreamOptions, "clock" | "signal"> {
  return { clock, signal };
}

function toWireEvent(toolCallId: string, event: CallEvent) {
  return event.kind === "progress"
    ? ({ case: "progress", value: event.progress } as const)
    : ({ case: "response", value: toWireResult(toolCallId, event.answer) } as const);
}
