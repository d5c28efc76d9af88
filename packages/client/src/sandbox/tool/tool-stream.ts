import { hasReason } from "@turnbox/core";
import type { ExecuteToolResponse } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import type { CallOptions } from "../call.ts";
import type { HostCalls } from "../host-call.ts";
import { createChannel } from "../stream/channel.ts";
import { createCollector } from "../stream/collector.ts";
import { cancelToolCall, type RunningCall, runToolCall } from "./run-tool-call.ts";
import { type Outputs, toBashResult, toToolResult } from "./to-tool-result.ts";
import type { BashResult, OutputChunk, ToolResult, ToolStream } from "./tool-call.ts";

/** Of each stream in the result of a command, unless its caller says otherwise. */
const MAX_RESULT_BYTES = 1024 * 1024;

type Request = RunningCall["request"];
type StreamOptions = CallOptions & { readonly limits?: { readonly outputBytes?: number } };

export const startToolStream = (calls: HostCalls, request: Request, options: StreamOptions): ToolStream<ToolResult> =>
  start(calls, { request, onChunk: () => undefined, toResult: toToolResult }, options);

/** The same, with the beginning of both streams in the result. */
export function startBashStream(calls: HostCalls, request: Request, options: StreamOptions): ToolStream<BashResult> {
  const maxBytes = options.limits?.outputBytes ?? MAX_RESULT_BYTES;
  const outputs: Outputs = { stdout: createCollector(maxBytes), stderr: createCollector(maxBytes) };
  const onChunk = ({ stream, data, droppedBytes }: OutputChunk): void => {
    outputs[stream].miss(droppedBytes);
    outputs[stream].add(data);
  };
  return start(calls, { request, onChunk, toResult: (response) => toBashResult(response, outputs) }, options);
}

interface Work<T> {
  readonly request: Request;
  readonly onChunk: (chunk: OutputChunk) => void;
  readonly toResult: (response: ExecuteToolResponse) => T;
}

function start<T extends ToolResult>(calls: HostCalls, work: Work<T>, options: CallOptions): ToolStream<T> {
  const { request, toResult } = work;
  const leaving = new AbortController();
  let onLeave: "cancel" | "go on" = "cancel";
  const signal = options.signal === undefined ? leaving.signal : AbortSignal.any([options.signal, leaving.signal]);
  const channel = createChannel<OutputChunk>(async () => {
    if (onLeave === "go on") return;
    leaving.abort();
    await ending.catch(() => undefined);
  });
  const onChunk = async (chunk: OutputChunk): Promise<void> => {
    work.onChunk(chunk);
    await channel.send(chunk);
  };
  const run = async (): Promise<T> => {
    try {
      const response = await runToolCall(calls, { request, onChunk }, { ...options, signal });
      channel.end();
      return toResult(response);
    } catch (error) {
      channel.end({ error });
      throw error;
    }
  };
  const ending = run();
  // Whoever asks for the result or reads on hears of it.
  ending.catch(() => undefined);

  return {
    toolCallId: request.toolCallId,
    [Symbol.asyncIterator]: () => channel[Symbol.asyncIterator](),
    result: async () => {
      // A loop that begins right after this reads everything.
      await Promise.resolve();
      channel.drain();
      return await ending;
    },
    detach: () => {
      onLeave = "go on";
    },
    cancel: async (call = {}) => {
      try {
        await cancelToolCall(calls, request, call);
      } catch (thrown) {
        if (!hasReason(thrown, "TOOL_CALL_NOT_FOUND")) throw thrown;
        // It has not begun there, and shall not.
        leaving.abort();
      }
    },
  };
}
