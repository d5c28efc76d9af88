import { canonicalJson, invalidArgument, linkSignals, parseVariables } from "@turnbox/core";
import type { Activity } from "../session/activity.ts";
import { assertGeneration } from "../session/generation.ts";
import { assertActive } from "../session/phase.ts";
import type { Session } from "../session/session.ts";
import type { SnapshotTool } from "../turn/tool-snapshot.ts";
import { type CallLimits, checkLimits } from "./call-limits.ts";
import { findTool } from "./catalog.ts";
import { type Ledger, type LedgerAnswer, NotStarted } from "./ledger.ts";
import type { OutputJournal } from "./output-journal.ts";
import type { Progress } from "./output.ts";
import type { ToolOutputs } from "./outputs.ts";
import { checkParameters, type Parameters } from "./parameters.ts";
import type { LedgerEntry, ToolResult } from "./result.ts";
import type { RunTool } from "./run-tool.ts";
import type { RunningCalls } from "./running-calls.ts";

export interface ToolCall {
  readonly callId: string;
  readonly toolName: string;
  readonly parameters: Parameters;
  readonly stdin: Uint8Array;
  readonly expectedGeneration: number | undefined;
  /** Called for each piece of output; the tool waits for it. Null reads without a reader. */
  readonly onProgress: ((progress: Progress) => Promise<void>) | null;
  /** Told of the call's output, which it can be read from; also where the call joins one in flight. */
  readonly onOutput?: (journal: OutputJournal) => void;
  /** Kills the call. Absent, only a cancel or the session's own end does. */
  readonly kill?: AbortSignal;
  readonly limits?: CallLimits;
}

/** Runs a tool of the catalog in a session, exactly once for its call id. */
export type ExecuteTool = (session: Session, call: ToolCall) => Promise<LedgerAnswer>;

/** A call with all that ends it. */
type EndingCall = ToolCall & { readonly kill: AbortSignal };
type Work = (session: Session, call: EndingCall) => Promise<ToolResult>;

const SNAPSHOT_TIMEOUT_MS = 60_000;
const MAX_STDIN_BYTES = 4 * 1024 * 1024;

export function createExecuteTool(deps: {
  readonly ledger: Ledger;
  readonly runTool: RunTool;
  readonly activity: Activity;
  readonly outputs: ToolOutputs;
  readonly running: RunningCalls;
  /** Throws if there is no room to put on record what calls do. */
  readonly assertRoom: () => void;
  /** Absent where the host takes no snapshots for tools. */
  readonly snapshotTool?: SnapshotTool | undefined;
}): ExecuteTool {
  return async (session, call) => {
    const tool = findTool(call.toolName);
    checkCallId(call.callId);
    checkParameters(tool, call.parameters);
    if ("env" in call.parameters)
      parseVariables("params.env", call.parameters["env"] as Readonly<Record<string, string>>);
    checkStdin(call.stdin, tool.tier);
    const limits = call.limits ?? {};
    checkLimits(limits, tool.tier);
    const run: Work = (at, checked) => deps.runTool(at, tool, checked);
    if (tool.effect === "reads") return await read(session, call, run);
    const payload = canonicalJson([
      tool.name,
      call.parameters,
      Buffer.from(call.stdin).toString("base64"),
      ...(Object.keys(limits).length === 0 ? [] : [limits]),
    ]);
    using _following = call.onOutput && deps.outputs.follow(session, call.callId, call.onOutput);
    return await deps.running.track(session, { callId: call.callId, ends: [] }, (cancelled) =>
      deps.ledger.once(session, { callId: call.callId, payload }, async () => {
        refuseWith(deps.assertRoom);
        using kill = linkSignals([cancelled, ...endsOf(session, call)]);
        const entry = await inGate(session, { ...call, kill: kill.signal }, run);
        const { result } = entry;
        if (deps.snapshotTool === undefined || result.isError) return entry;
        // Outside of the gate: an operation that waits for the tools to end is ahead of the snapshot in the session's order.
        const snapshotId = await snapshot(deps.snapshotTool, session, { ...call, ...result });
        return { ...entry, result: { ...result, snapshotId } };
      }),
    );
  };

  /** Pure reads are tool calls that leave no trace: the same id reads again. */
  async function read(session: Session, call: ToolCall, run: Work): Promise<LedgerAnswer> {
    const tracked = { callId: call.callId, ends: endsOf(session, call) };
    return await deps.running.track(session, tracked, async (kill) => {
      try {
        using _place = enter(session, call);
        deps.activity.touch(session);
        return { result: await run(session, { ...call, kill }), from: "run" };
      } catch (thrown) {
        throw thrown instanceof NotStarted ? thrown.cause : thrown;
      }
    });
  }

  async function inGate(session: Session, call: EndingCall, work: Work): Promise<LedgerEntry> {
    using _place = enter(session, call);
    using output = deps.outputs.begin(session, call.callId);
    deps.activity.touch(session);
    // The head stays as it is while a call is inside the gate.
    const { headGeneration } = session.row;
    const onProgress = async (progress: Progress): Promise<void> => {
      await output.journal.append(progress);
      await call.onProgress?.(progress);
    };
    try {
      return { result: await work(session, { ...call, onProgress }), headGeneration };
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

/** What ends a call besides its cancel. */
function endsOf({ lifetime, interrupt }: Session, { kill }: ToolCall): readonly AbortSignal[] {
  return [...(kill === undefined ? [] : [kill]), lifetime.signal, interrupt];
}

/** A place among the session's running calls. */
function enter(session: Session, call: ToolCall): Disposable {
  return refuseWith(() => {
    assertActive(session.row.phase, "ExecuteTool");
    assertGeneration(session, call.expectedGeneration);
    return session.gate.enter();
  });
}

/** A refusal here comes before any effect. */
function refuseWith<Result>(check: () => Result): Result {
  try {
    return check();
  } catch (cause) {
    throw new NotStarted("refused", { cause });
  }
}

function checkStdin({ length }: Uint8Array, tier: 1 | 2): void {
  if (length > 0 && tier === 1) throw invalidArgument("stdin", "is for tools that run code");
  if (length > MAX_STDIN_BYTES) throw invalidArgument("stdin", `must have at most ${MAX_STDIN_BYTES} bytes`);
}

function checkCallId(callId: string): void {
  if (!/^[\x20-\x7e]{1,128}$/.test(callId)) {
    throw invalidArgument("tool_call_id", "must have 1 to 128 printable ASCII characters");
  }
}
