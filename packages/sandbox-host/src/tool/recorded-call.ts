import { SandboxError } from "@turnbox/core";
import type { KnownCall } from "../record/row.ts";
import type { ToolResult } from "./result.ts";

/** Errors travel in the headers of a response, where there is little room. */
const MAX_SHOWN_CHARACTERS = 1024;

/**
 * The result of a call that the ledger has a record of, if its effect is in the session's files. Throws `CALL_ROLLED_BACK`,
 * with what the result was, if the effect was discarded, and `OUTCOME_UNKNOWN` if the record does not say.
 */
export async function resultOf(
  call: KnownCall,
  load: (call: KnownCall) => Promise<ToolResult | null>,
): Promise<ToolResult> {
  const { callId, status, position } = call;
  const result = status === "started" ? null : await load(call);
  if (result === null) throw outcomeUnknown(callId, "was started and its end was not recorded", "not_recorded");
  if (position === "discarded") throw rolledBack(callId, result);
  if (status === "doubtful")
    throw outcomeUnknown(
      callId,
      "finished after the last snapshot, and what was written then may be lost",
      "files_lost",
    );
  if (position === "unsure")
    throw outcomeUnknown(
      callId,
      "was under way when the snapshot was taken that the files come from",
      "cut_by_snapshot",
    );
  return result;
}

function outcomeUnknown(
  callId: string,
  what: string,
  cause: "not_recorded" | "files_lost" | "cut_by_snapshot",
): SandboxError {
  return new SandboxError(
    "OUTCOME_UNKNOWN",
    `tool call ${JSON.stringify(callId)} ${what}; DiffSnapshots shows what has changed since the last snapshot`,
    { metadata: { toolCallId: callId, cause } },
  );
}

function rolledBack(callId: string, result: ToolResult): SandboxError {
  const { content, isError, exitCode, exitReason, generation } = result;
  return new SandboxError(
    "CALL_ROLLED_BACK",
    `tool call ${JSON.stringify(callId)} ran, and a rollback discarded what it did`,
    {
      metadata: {
        toolCallId: callId,
        content: content.slice(0, MAX_SHOWN_CHARACTERS).toWellFormed(),
        contentCharacters: String(content.length),
        isError: String(isError),
        exitReason,
        generation: String(generation),
        ...(exitCode === null ? {} : { exitCode: String(exitCode) }),
      },
    },
  );
}
