import { canonicalJson, invalidArgument, parseVariables } from "@turnbox/core";
import type { Activity } from "../session/activity.ts";
import { assertGeneration } from "../session/generation.ts";
import { assertActive } from "../session/phase.ts";
import type { Session } from "../session/session.ts";
import type { SnapshotTool } from "../turn/tool-snapshot.ts";
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

const SNAPSHOT_TIMEOUT_MS = 60_000;
const MAX_STDIN_BYTES = 4 * 1024 * 1024;

export function createExecuteTool(deps: {
  readonly ledger: Ledger;
  readonly runBash: RunBash;
  readonly activity: Activity;
  /** Absent where the host takes no snapshots for tools. */
  readonly snapshotTool?: SnapshotTool | undefined;
}): ExecuteTool {
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
      const result = await inGate(session, call, () =>
        run[tool.name](session, {
          ...call,
          kill: AbortSignal.any([call.kill, session.lifetime.signal, session.interrupt]),
        }),
      );
      // Outside of the gate: an operation that waits for the tools to end is ahead of the snapshot in the session's order.
      return deps.snapshotTool === undefined || result.isError
        ? result
        : { ...result, snapshotId: await snapshot(deps.snapshotTool, session, { ...call, ...result }) };
    });
  };

  async function inGate(session: Session, call: ToolCall, work: () => Promise<ToolResult>): Promise<ToolResult> {
    using _place = enter(session, call);
    deps.activity.touch(session);
    try {
      return await work();
    } finally {
      deps.activity.touch(session);
    }
  }
}

async function snapshot(
  take: SnapshotTool,
  session: Session,
  { callId, generation }: { readonly callId: string; readonly generation: number },
): Promise<string | null> {
  const signal = AbortSignal.any([session.lifetime.signal, AbortSignal.timeout(SNAPSHOT_TIMEOUT_MS)]);
  return await take(session, { callId, generation, signal });
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
