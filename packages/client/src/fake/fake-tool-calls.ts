import { Code, ConnectError, type ServiceImpl } from "@connectrpc/connect";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { SandboxError } from "@turnbox/core";
import { toConnectError } from "@turnbox/rpc/wire";
import { ExitReason, OutputStream, type ToolService } from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import type { OutputChunk, ToolResult } from "../sandbox/tool/tool-call.ts";

/** Runs the tools of sessions in memory. */
export interface FakeTools {
  execute(
    sessionId: string,
    request: {
      readonly toolName: string;
      readonly toolCallId: string;
      readonly params: Readonly<Record<string, unknown>>;
      readonly timeoutMs?: number;
    },
    call: { readonly signal: AbortSignal; readonly onProgress: (progress: OutputChunk) => void },
  ): Promise<ToolResult>;
}

interface FakeToolCall {
  readonly progress: OutputChunk[];
  readonly kill: AbortController;
  readonly ended: Promise<ToolResult>;
  /** Called whenever there is something new. */
  readonly listeners: Set<() => void>;
}

/** Tool calls that outlive their readers, and can be joined at an offset. `breakAfter` says when a stream breaks. */
export function createFakeToolCalls(
  provider: FakeTools,
  breakAfter: () => number | undefined,
): Pick<ServiceImpl<typeof ToolService>, "executeToolStream" | "attachToolCall" | "cancelToolCall"> {
  const calls = new Map<string, FakeToolCall>();
  const find = (sessionId: string, toolCallId: string): FakeToolCall => {
    const call = calls.get(`${sessionId}/${toolCallId}`);
    if (call !== undefined) return call;
    throw toConnectError(new SandboxError("TOOL_CALL_NOT_FOUND", `no call ${toolCallId}`), "r1");
  };
  return {
    async *executeToolStream({ call: request }) {
      if (request === undefined) throw new ConnectError("no call", Code.InvalidArgument);
      const { sessionId, toolCallId, toolName, params = {}, limits } = request;
      const progress: OutputChunk[] = [];
      const kill = new AbortController();
      const listeners = new Set<() => void>();
      const tell = (): void => {
        for (const listener of listeners) listener();
      };
      const timeoutMs = limits?.timeout === undefined ? {} : { timeoutMs: durationMs(limits.timeout) };
      const ended = provider
        .execute(
          sessionId,
          { toolName, toolCallId, params, ...timeoutMs },
          {
            signal: kill.signal,
            onProgress: (one) => {
              progress.push(one);
              tell();
            },
          },
        )
        .finally(tell);
      ended.catch(() => undefined);
      const call = { progress, kill, ended, listeners };
      calls.set(`${sessionId}/${toolCallId}`, call);
      yield* follow(call, { stdout: 0, stderr: 0 }, breakAfter());
    },
    async *attachToolCall({ sessionId, toolCallId, stdoutOffset, stderrOffset }) {
      const from = { stdout: Number(stdoutOffset), stderr: Number(stderrOffset) };
      yield* follow(find(sessionId, toolCallId), from, breakAfter());
    },
    cancelToolCall: ({ sessionId, toolCallId }) => {
      find(sessionId, toolCallId).kill.abort(new SandboxError("CANCELLED", "the call was killed"));
      return { wasRunning: true };
    },
  };
}

async function* follow(call: FakeToolCall, from: Record<OutputChunk["stream"], number>, breakAfter = Infinity) {
  let ended: { readonly response?: ToolResult; readonly thrown?: unknown } | undefined;
  void call.ended.then(
    (response) => (ended = { response }),
    (thrown: unknown) => (ended = { thrown }),
  );
  let sent = 0;
  for (let index = 0; ; ) {
    const one = call.progress[index];
    if (sent >= breakAfter) throw new ConnectError("the connection broke", Code.Unavailable);
    if (one !== undefined) {
      index += 1;
      if (one.offset + one.data.length <= from[one.stream]) continue;
      sent += 1;
      const stream = one.stream === "stdout" ? OutputStream.STDOUT : OutputStream.STDERR;
      yield { event: { case: "progress" as const, value: { stream, data: one.data, offset: BigInt(one.offset) } } };
      continue;
    }
    if (ended !== undefined) break;
    const { promise, resolve } = Promise.withResolvers<void>();
    call.listeners.add(resolve);
    await Promise.race([promise, call.ended.catch(() => undefined)]);
    call.listeners.delete(resolve);
  }
  if (ended.response === undefined) throw toConnectError(SandboxError.from(ended.thrown), "r1");
  yield { event: { case: "response" as const, value: toWire(ended.response) } };
}

const toWire = ({ toolCallId, content, isError, exitCode, exitReason, tier, generation }: ToolResult) => ({
  toolCallId,
  content,
  isError,
  ...(exitCode === undefined ? {} : { exitCode }),
  exitReason: exitReason === "timed_out" ? ExitReason.TIMED_OUT : ExitReason.EXITED,
  tier,
  generation,
});
