import type { ConnectRouter } from "@connectrpc/connect";
import { SandboxError } from "@turnbox/core";
import { toConnectError } from "@turnbox/rpc/wire";
import {
  type ExecuteToolRequest,
  ExitReason,
  OutputStream,
  ToolService,
} from "@turnbox/protocol/turnbox/host/v1/tool_pb";

/** The tool calls of a host in memory: run once for their id, joined from an offset. */
export interface FakeTools {
  /** What every call writes, in pieces. */
  pieces: readonly { readonly stream: "stdout" | "stderr"; readonly text: string }[];
  /** Pieces that are written before `go` resolves; all unless given. */
  before: number;
  go: Promise<void>;
  /** Whether calls are recorded; reads are not. */
  ledger: "kept" | "none";
  /** Calls whose end was not recorded. */
  lost: Set<string>;
  readonly known: Set<string>;
  readonly ended: Set<string>;
  /** Streams that were read to their end. */
  readonly complete: string[];
  readonly ran: ExecuteToolRequest[];
  readonly cancelled: string[];
  readonly attached: { readonly stdout: number; readonly stderr: number }[];
}

export const newTools = (pieces: FakeTools["pieces"]): FakeTools => ({
  pieces,
  before: pieces.length,
  go: Promise.resolve(),
  ledger: "kept",
  lost: new Set(),
  known: new Set(),
  ended: new Set(),
  complete: [],
  ran: [],
  cancelled: [],
  attached: [],
});

const STREAMS = { stdout: OutputStream.STDOUT, stderr: OutputStream.STDERR } as const;

export function routeTools(router: ConnectRouter, tools: FakeTools): void {
  const { known, ended } = tools;
  const responseOf = (toolCallId: string, replayed: boolean) => {
    const total = (name: "stdout" | "stderr") => ({
      totalBytes: BigInt(
        tools.pieces.filter(({ stream }) => stream === name).reduce((sum, { text }) => sum + text.length, 0),
      ),
    });
    const counts = { stdout: total("stdout"), stderr: total("stderr") };
    return { toolCallId, content: "done", exitCode: 0, exitReason: ExitReason.EXITED, replayed, ...counts };
  };
  const endOf = (toolCallId: string, replayed: boolean) => ({
    event: { case: "response" as const, value: responseOf(toolCallId, replayed) },
  });
  async function* run(toolCallId: string, from: { readonly stdout: number; readonly stderr: number }) {
    const at = { stdout: 0, stderr: 0 };
    for (const [index, { stream, text }] of tools.pieces.entries()) {
      if (index === tools.before) await tools.go;
      const offset = at[stream];
      at[stream] += text.length;
      const skip = Math.max(0, from[stream] - offset);
      if (skip >= text.length) continue;
      const data = Buffer.from(text.slice(skip));
      const value = { stream: STREAMS[stream], data, offset: BigInt(offset + skip) };
      yield { event: { case: "progress" as const, value } };
    }
    if (tools.before >= tools.pieces.length) await tools.go;
    ended.add(toolCallId);
  }
  const unknown = (toolCallId: string): Error =>
    toConnectError(new SandboxError("OUTCOME_UNKNOWN", `${toolCallId} was started and its end was not recorded`), "r1");

  const begin = (call: ExecuteToolRequest): "replay" | "run" => {
    if (tools.lost.has(call.toolCallId)) throw unknown(call.toolCallId);
    const kind = ended.has(call.toolCallId) ? "replay" : "run";
    if (!known.has(call.toolCallId)) tools.ran.push(call);
    if (tools.ledger === "kept") known.add(call.toolCallId);
    return kind;
  };

  router.service(ToolService, {
    executeTool: async (call) => {
      const kind = begin(call);
      await tools.go;
      ended.add(call.toolCallId);
      return responseOf(call.toolCallId, kind === "replay" && tools.ledger === "kept");
    },
    async *executeToolStream({ call }) {
      if (call === undefined) throw new Error("a stream without a call");
      const { toolCallId } = call;
      const kind = begin(call);
      if (kind === "run") yield* run(toolCallId, { stdout: 0, stderr: 0 });
      yield endOf(toolCallId, kind === "replay" && tools.ledger === "kept");
      tools.complete.push(toolCallId);
    },
    async *attachToolCall({ toolCallId, stdoutOffset, stderrOffset }) {
      const from = { stdout: Number(stdoutOffset), stderr: Number(stderrOffset) };
      tools.attached.push(from);
      if (tools.lost.has(toolCallId)) throw unknown(toolCallId);
      if (!known.has(toolCallId))
        throw toConnectError(new SandboxError("TOOL_CALL_NOT_FOUND", `no call ${toolCallId}`), "r1");
      yield* run(toolCallId, from);
      yield endOf(toolCallId, true);
    },
    cancelToolCall: ({ toolCallId }) => {
      tools.cancelled.push(toolCallId);
      return { wasRunning: true };
    },
  });
}
