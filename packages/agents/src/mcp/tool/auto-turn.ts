import { type Sandbox, SandboxError } from "@turnbox/client";
import type { CallToolResult } from "@modelcontextprotocol/sdk/types.js";
import { text } from "../result/tool-result.ts";

export interface SealedCall {
  readonly sandbox: Sandbox;
  readonly toolCallId: string;
  readonly signal: AbortSignal;
}

/** Seals a turn after a call, and says so behind its result. The call stands also if that fails. */
export async function sealTurn(
  result: CallToolResult,
  { sandbox, toolCallId, signal }: SealedCall,
): Promise<CallToolResult> {
  try {
    const outcome = result.isError === true ? "failed" : "succeeded";
    const { number, snapshotId, unchanged } = await sandbox.turn({ key: toolCallId, outcome, signal });
    return {
      ...result,
      content: [...result.content, ...(unchanged ? [] : [text(`[turn ${String(number)} is sealed]`)])],
      _meta: { ...result._meta, "turnbox/turn": { turn: number, snapshotId, unchanged } },
    };
  } catch (thrown) {
    const { reason, message } = SandboxError.from(thrown);
    return { ...result, content: [...result.content, text(`[no turn was sealed: ${reason}: ${message}]`)] };
  }
}
