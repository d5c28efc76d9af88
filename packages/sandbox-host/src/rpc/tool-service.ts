import { create, type JsonObject } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { invalidArgument, parseEnum } from "@turnbox/core";
import { principalOf } from "@turnbox/core/server";
import {
  type ExecuteToolRequest,
  ExecuteToolRequestSchema,
  type ExecuteToolStreamResponse,
  ExecuteToolStreamResponseSchema,
  OnDisconnect,
  OutputStream,
  SlowReader,
  type ToolService,
} from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import { CATALOG } from "../tool/catalog.ts";
import { createFrameChannel } from "../tool/frames.ts";
import type { LedgerAnswer } from "../tool/ledger.ts";
import type { Progress, StreamName } from "../tool/output.ts";
import { toWireResult } from "./convert.ts";
import type { Host } from "./host.ts";

const DISCONNECT: ReadonlyMap<number, "continue" | "kill"> = new Map([
  [OnDisconnect.UNSPECIFIED, "continue"],
  [OnDisconnect.CONTINUE, "continue"],
  [OnDisconnect.KILL, "kill"],
]);

const STREAMS = {
  stdout: OutputStream.STDOUT,
  stderr: OutputStream.STDERR,
} as const satisfies Record<StreamName, OutputStream>;

/** ToolService: parse, run, convert; the stream is paced by its reader. */
export function createToolService(host: Host): Partial<ServiceImpl<typeof ToolService>> {
  const execute = async (
    request: ExecuteToolRequest,
    context: HandlerContext,
    onProgress: ((progress: Progress) => Promise<void>) | null,
  ): Promise<LedgerAnswer> => {
    const session = host.registry.get(request.sessionId, principalOf(context));
    const onDisconnect = parseEnum("on_disconnect", request.onDisconnect, DISCONNECT);
    if (request.slowReader !== SlowReader.UNSPECIFIED && request.slowReader !== SlowReader.WAIT) {
      throw invalidArgument("slow_reader", "this host knows only SLOW_READER_WAIT yet");
    }
    if (request.limits !== undefined)
      throw invalidArgument("limits", "this host takes a call's timeout as params.timeout_ms only yet");
    return await host.executeTool(session, {
      callId: request.toolCallId,
      toolName: request.toolName,
      parameters: request.params ?? {},
      stdin: request.stdin,
      expectedGeneration: request.expectedGeneration,
      onProgress,
      kill: onDisconnect === "kill" ? context.signal : new AbortController().signal,
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
          readOnly: false,
        })),
      };
    },

    executeTool: async (request, context) => toWireResult(request.toolCallId, await execute(request, context, null)),

    async *executeToolStream(request, context): AsyncGenerator<ExecuteToolStreamResponse> {
      const call = request.call ?? create(ExecuteToolRequestSchema);
      const channel = createFrameChannel(host.clock);
      // A stalled reader that vanishes never resumes this generator, so its cleanup hangs on the signal.
      context.signal.addEventListener("abort", channel.close, { once: true });
      const answer = execute(call, context, channel.push);
      answer.then(channel.end, channel.end);
      for await (const { stream, data, offset } of channel.frames()) {
        yield create(ExecuteToolStreamResponseSchema, {
          event: { case: "progress", value: { stream: STREAMS[stream], data, offset: BigInt(offset) } },
        });
      }
      const response = toWireResult(call.toolCallId, await answer);
      yield create(ExecuteToolStreamResponseSchema, { event: { case: "response", value: response } });
    },
  };
}
