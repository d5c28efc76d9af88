import type { ConnectRouter } from "@connectrpc/connect";
import { SandboxError, toConnectError } from "@turnbox/core";
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
    return {
      event: {
        case: "response" as const,
        value: { toolCallId, content: "done", exitCode: 0, exitReason: ExitReason.EXITED, replayed, ...counts },
      },
    };
  };
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

  router.service(ToolService, {
    async *executeToolStream({ call }) {
      const toolCallId = call?.toolCallId ?? "";
      if (tools.lost.has(toolCallId)) throw unknown(toolCallId);
      const isReplay = ended.has(toolCallId);
      if (call !== undefined && !known.has(toolCallId)) tools.ran.push(call);
      if (tools.ledger === "kept") known.add(toolCallId);
      if (!isReplay) yield* run(toolCallId, { stdout: 0, stderr: 0 });
      yield responseOf(toolCallId, isReplay && tools.ledger === "kept");
      tools.complete.push(toolCallId);
    },
    async *attachToolCall({ toolCallId, stdoutOffset, stderrOffset }) {
      const from = { stdout: Number(stdoutOffset), stderr: Number(stderrOffset) };
      tools.attached.push(from);
      if (tools.lost.has(toolCallId)) throw unknown(toolCallId);
      if (!known.has(toolCallId))
        throw toConnectError(new SandboxError("TOOL_CALL_NOT_FOUND", `no call ${toolCallId}`), "r1");
      yield* run(toolCallId, from);
      yield responseOf(toolCallId, true);
    },
    cancelToolCall: ({ toolCallId }) => {
      tools.cancelled.push(toolCallId);
      return { wasRunning: true };
    },
  });
}
