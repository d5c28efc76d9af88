import {
  type ContentBlock as WireBlock,
  type ExecuteToolResponse,
  ExitReason as WireExitReason,
} from "@turnbox/protocol/turnbox/host/v1/tool_pb";
import type { Collector } from "../stream/collector.ts";
import { toOptional } from "../wire/text.ts";
import { toMs } from "../wire/time.ts";
import type { BashResult, ContentBlock, ExitReason, ToolResult } from "./tool-call.ts";

const REASONS: ReadonlyMap<WireExitReason, ExitReason> = new Map([
  [WireExitReason.EXITED, "exited"],
  [WireExitReason.TIMED_OUT, "timed_out"],
  [WireExitReason.KILLED, "killed"],
  [WireExitReason.OOM, "oom"],
  [WireExitReason.SANDBOX_LOST, "sandbox_lost"],
]);

const EXIT = { timedOut: 124, notRun: 125, killed: 137 } as const;

export function toToolResult(response: ExecuteToolResponse): ToolResult {
  const { toolCallId, content, blocks, isError, exitCode, exitReason, tier, generation, replayed } = response;
  return {
    toolCallId,
    content,
    blocks: blocks.length === 0 ? [{ type: "text", text: content }] : blocks.flatMap(toBlock),
    isError,
    exitCode,
    exitReason: REASONS.get(exitReason),
    snapshotId: toOptional(response.snapshotId),
    durationMs: toMs(response.duration) ?? 0,
    tier,
    generation,
    replayed,
  };
}

export interface Outputs {
  readonly stdout: Collector;
  readonly stderr: Collector;
}

export function toBashResult(response: ExecuteToolResponse, { stdout, stderr }: Outputs): BashResult {
  const result = toToolResult(response);
  const exitCode = result.exitCode ?? exitCodeOf(result.exitReason);
  return {
    ...result,
    stdout: stdout.text(),
    stderr: stderr.text(),
    stdoutDroppedBytes: stdout.droppedBytes(),
    stderrDroppedBytes: stderr.droppedBytes(),
    exitCode,
    ok: exitCode === 0,
  };
}

/** Of a call without a process that ended by itself. */
function exitCodeOf(reason: ExitReason | undefined): number {
  if (reason === "timed_out") return EXIT.timedOut;
  return reason === "killed" || reason === "oom" || reason === "sandbox_lost" ? EXIT.killed : EXIT.notRun;
}

/** A kind of block that a newer host has is left out; its text is in the content. */
function toBlock({ block }: WireBlock): readonly ContentBlock[] {
  if (block.case === "text") return [{ type: "text", text: block.value.text }];
  if (block.case === "image") return [{ type: "image", data: block.value.data, mediaType: block.value.mediaType }];
  return [];
}
