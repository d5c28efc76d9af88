import { canonicalJson, invalidArgument, parseVariables } from "@turnbox/core";
import { assertGeneration } from "../session/generation.ts";
import { assertActive } from "../session/phase.ts";
import type { Session } from "../session/session.ts";
import type { RunBash } from "./bash.ts";
import { findTool, type ToolName } from "./catalog.ts";
import { type Ledger, type LedgerAnswer, NotStarted } from "./ledger.ts";
import type { Progress } from "./output.ts";
import { checkParameters, type Parameters } from "./parameters.ts";
import type { ToolResult } from "./result.ts";

export interface ToolCall {
  readonly callId: string;
  readonly toolName: string;
  readonly parameters: Parameters;
  readonly stdin: Uint8Array;
  readonly expectedGeneration: number | undefined;
  /** Called for each piece of output; the tool waits for it. Null reads without a reader. */
  readonly onProgress: ((progress: Progress) => Promise<void>) | null;
  /** Kills the call. */
  readonly kill: AbortSignal;
}

/** Runs a tool of the catalog in a session, exactly once for its call id. */
export type ExecuteTool = (session: Session, call: ToolCall) => Promise<LedgerAnswer>;

const MAX_STDIN_BYTES = 4 * 1024 * 1024;

export function createExecuteTool(deps: { readonly ledger: Ledger; readonly runBash: RunBash }): ExecuteTool {
  const run: Record<ToolName, (session: Session, call: ToolCall) => Promise<ToolResult>> = {
    bash: (session, call) => deps.runBash(session, call),
  };

  return async (session, call) => {
    const tool = findTool(call.toolName);
    checkCallId(call.callId);
    checkParameters(tool, call.parameters);
    if ("env" in call.parameters)
      parseVariables("params.env", call.parameters["env"] as Readonly<Record<string, string>>);
    if (call.stdin.length > MAX_STDIN_BYTES)
      throw invalidArgument("stdin", `must have at most ${MAX_STDIN_BYTES} bytes`);
    const payload = canonicalJson([tool.name, call.parameters, Buffer.from(call.stdin).toString("base64")]);
    return await deps.ledger.once(session, { callId: call.callId, payload }, async () => {
      using _place = enter(session, call);
      return await run[tool.name](session, {
        ...call,
        kill: AbortSignal.any([call.kill, session.lifetime.signal, session.interrupt]),
      });
    });
  };
}

/** A place among the session's running calls; a refusal here comes before any effect. */
function enter(session: Session, call: ToolCall): Disposable {
  try {
    assertActive(session.row.phase, "ExecuteTool");
    assertGeneration(session, call.expectedGeneration);
    return session.gate.enter();
  } catch (cause) {
    throw new NotStarted("refused", { cause });
  }
}

function checkCallId(callId: string): void {
  if (!/^[\x20-\x7e]{1,128}$/.test(callId)) {
    throw invalidArgument("tool_call_id", "must have 1 to 128 printable ASCII characters");
  }
}
