import type { MessageInitShape } from "@bufbuild/protobuf";
import { hasReason, raceSignal, SandboxError } from "@turnbox/core";
import {
  type ExecuteToolRequestSchema,
  type ExecuteToolResponse,
  OutputStream,
  type ToolProgress,
} from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import type { CallOptions } from "../call.ts";
import type { HostCallContext, HostCalls } from "../host-call.ts";
import { DEFAULT_TIMEOUT_MS } from "../link/default-timeouts.ts";
import type { OpenSandbox } from "../link/sandbox-link.ts";
import { toNumber } from "../wire/number.ts";
import type { OutputChunk } from "./tool-call.ts";

export interface RunningCall {
  readonly request: MessageInitShape<typeof ExecuteToolRequestSchema> & {
    readonly sessionId: string;
    readonly toolCallId: string;
  };
  /** Given every byte once, in order within its stream; the next ones wait for it. */
  readonly onChunk: (chunk: OutputChunk) => Promise<void>;
}

type CallEvent =
  | { readonly case: "progress"; readonly value: ToolProgress }
  | { readonly case: "response"; readonly value: ExecuteToolResponse }
  | { readonly case: undefined; readonly value?: undefined };
type Events = AsyncIterable<{ readonly event: CallEvent }>;
type Seen = Record<OutputChunk["stream"], bigint>;

/**
 * Runs a call to its end, once, whatever happens to connections: where a stream breaks it is joined again from the offsets
 * that were reached. A call that is no longer waited for, because of the signal or the time, is killed.
 */
export async function runToolCall(
  calls: HostCalls,
  call: RunningCall,
  options: CallOptions,
): Promise<ExecuteToolResponse> {
  const seen: Seen = { stdout: 0n, stderr: 0n };
  let begun: "no" | "perhaps" = "no";
  const attempt = async (sandbox: OpenSandbox, context: HostCallContext): Promise<ExecuteToolResponse> => {
    const { tools } = sandbox.host;
    const { signal } = context;
    const take = (events: Events): Promise<ExecuteToolResponse> => takeEvents(events, { call, seen, context });
    if (begun === "perhaps") {
      try {
        return await take(tools.attachToolCall(attachment(call, seen), { signal }));
      } catch (thrown) {
        // It never arrived, or it is a read, which leaves no trace: the same id does it, or reads, again.
        if (!hasReason(thrown, "TOOL_CALL_NOT_FOUND")) throw thrown;
      }
    }
    begun = "perhaps";
    const response = await take(tools.executeToolStream({ call: call.request }, { signal }));
    if (!response.replayed || isAll(response, seen)) return response;
    // The answer to an earlier call comes without its output, which is kept for a while.
    return await take(tools.attachToolCall(attachment(call, seen), { signal }));
  };
  try {
    return await calls.call({ options, timeoutMs: DEFAULT_TIMEOUT_MS.tool }, attempt);
  } catch (thrown) {
    if (hasReason(thrown, "CANCELLED", "DEADLINE_EXCEEDED"))
      await cancelToolCall(calls, call.request).catch(() => false);
    throw thrown;
  }
}

/** Kills the call with everything it started; returns whether it was running until now. */
export async function cancelToolCall(
  calls: HostCalls,
  { toolCallId }: { readonly toolCallId: string },
  options: CallOptions = {},
): Promise<boolean> {
  const { sessionId } = calls;
  const { wasRunning } = await calls.call({ options, timeoutMs: DEFAULT_TIMEOUT_MS.cleanup }, ({ host }, { signal }) =>
    host.tools.cancelToolCall({ sessionId, toolCallId }, { signal }),
  );
  return wasRunning;
}

const attachment = ({ request: { sessionId, toolCallId, slowReader } }: RunningCall, seen: Seen) => ({
  sessionId,
  toolCallId,
  stdoutOffset: seen.stdout,
  stderrOffset: seen.stderr,
  ...(slowReader === undefined ? {} : { slowReader }),
});

const isAll = ({ stdout, stderr }: ExecuteToolResponse, seen: Seen): boolean =>
  (stdout?.totalBytes ?? 0n) <= seen.stdout && (stderr?.totalBytes ?? 0n) <= seen.stderr;

async function takeEvents(
  events: Events,
  { call, seen, context }: { readonly call: RunningCall; readonly seen: Seen; readonly context: HostCallContext },
): Promise<ExecuteToolResponse> {
  const coming = events[Symbol.asyncIterator]();
  for (let next = await coming.next(); next.done !== true; next = await coming.next()) {
    const { event } = next.value;
    context.progress();
    if (event.case === "response") {
      // Nothing follows but the end: it is read, since a stream that is left before stays open, and it is not waited for.
      coming.next().catch(() => undefined);
      return event.value;
    }
    const chunk = event.case === "progress" ? nextChunk(event.value, seen) : undefined;
    if (chunk !== undefined) await raceSignal(call.onChunk(chunk), context.signal);
  }
  context.signal.throwIfAborted();
  throw new SandboxError("HOST_UNREACHABLE", "the stream ended without a result", {
    metadata: { toolCallId: call.request.toolCallId },
  });
}

/** The part of the progress that was not seen yet; undefined if there is none. Moves the offset. */
function nextChunk({ stream: wire, data, offset }: ToolProgress, seen: Seen): OutputChunk | undefined {
  const stream = wire === OutputStream.STDERR ? "stderr" : "stdout";
  const at = seen[stream];
  const end = offset + BigInt(data.length);
  if (end <= at) return undefined;
  seen[stream] = end;
  const known = at > offset ? Number(at - offset) : 0;
  const first = at > offset ? at : offset;
  return {
    stream,
    data: known === 0 ? data : data.subarray(known),
    offset: toNumber(first),
    droppedBytes: toNumber(first - at),
  };
}
