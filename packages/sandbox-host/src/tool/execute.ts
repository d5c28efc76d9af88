import { invalidArgument, linkSignals, parseVariables } from "@turnbox/core";
import type { Activity } from "../session/activity.ts";
import { canonicalJson } from "../session/canonical-json.ts";
import { assertGeneration } from "../session/generation.ts";
import { assertActive } from "../session/phase.ts";
import type { Session } from "../session/session.ts";
import type { SnapshotTool } from "../turn/tool-snapshot.ts";
import { type CallLimits, checkLimits } from "./call-limits.ts";
import { type CatalogTool, findTool } from "./catalog.ts";
import { type Ledger, type LedgerAnswer, NotStarted } from "./ledger.ts";
import type { Progress } from "./output/capture.ts";
import type { OutputJournal } from "./output/journal.ts";
import type { OutputStore } from "./output/store.ts";
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
  /** Gets the journal of the call's output, also if the call joins one in flight. */
  readonly onOutput?: (journal: OutputJournal) => void;
  /** Aborts to kill the call. Without it only a cancel or the session's own end does. */
  readonly kill?: AbortSignal;
  readonly limits?: CallLimits;
}

/** Runs a tool of the catalog in a session, exactly once for its call id. */
export type ExecuteTool = (session: Session, call: ToolCall) => Promise<LedgerAnswer>;

/** A call with all that ends it, and with what takes its output. */
type RunningCall = ToolCall & {
  readonly kill: AbortSignal;
  readonly onProgress: ((progress: Progress) => Promise<void>) | null;
};
type Work = (session: Session, call: RunningCall) => Promise<ToolResult>;

const SNAPSHOT_TIMEOUT_MS = 60_000;
const MAX_STDIN_BYTES = 4 * 1024 * 1024;

interface Deps {
  readonly ledger: Ledger;
  readonly runTool: RunTool;
  readonly activity: Activity;
  readonly outputs: OutputStore;
  readonly running: RunningCalls;
  /** Throws if there is no room to put on record what calls do. */
  readonly assertRoom: () => void;
  /** Absent if the host takes no snapshots for tools. */
  readonly snapshotTool?: SnapshotTool | undefined;
}

export function createExecuteTool(deps: Deps): ExecuteTool {
  return async (session, call) => {
    const tool = check(call);
    const run: Work = (at, checked) => deps.runTool(at, tool, checked);
    if (tool.effect === "reads") return await read(deps, session, { call, run });
    const payload = payloadOf(tool.name, call);
    using _following = call.onOutput && deps.outputs.follow(session, call.callId, call.onOutput);
    return await deps.running.track(session, { callId: call.callId, ends: [] }, (cancelled) =>
      deps.ledger.once(session, { callId: call.callId, payload }, async () => {
        refuseWith(deps.assertRoom);
        using kill = linkSignals([cancelled, ...endsOf(session, call)]);
        const entry = await runInGate(deps, session, { call, run, kill: kill.signal });
        const { result } = entry;
        if (deps.snapshotTool === undefined || result.isError) return entry;
        // Outside of the gate: an operation that waits for the tools to end is ahead of the snapshot in the session's order.
        const snapshotId = await snapshot(deps.snapshotTool, session, { ...call, ...result });
        return { ...entry, result: { ...result, snapshotId } };
      }),
    );
  };
}

interface PreparedCall {
  readonly call: ToolCall;
  readonly run: Work;
}

/** Pure reads are tool calls that leave no trace: the same id reads again. */
async function read({ running, activity }: Deps, session: Session, { call, run }: PreparedCall): Promise<LedgerAnswer> {
  const tracked = { callId: call.callId, ends: endsOf(session, call) };
  return await running.track(session, tracked, async (kill) => {
    try {
      using _inside = enter(session, call);
      activity.touch(session);
      return { result: await run(session, { ...call, kill, onProgress: null }), from: "run" };
    } catch (thrown) {
      throw thrown instanceof NotStarted ? thrown.cause : thrown;
    }
  });
}

async function runInGate(
  { outputs, activity }: Deps,
  session: Session,
  { call, run, kill }: PreparedCall & { readonly kill: AbortSignal },
): Promise<LedgerEntry> {
  using _inside = enter(session, call);
  using output = outputs.begin(session, call.callId);
  activity.touch(session);
  // The head stays as it is while a call is inside the gate.
  const { headGeneration } = session.row;
  try {
    const onProgress = (progress: Progress): Promise<void> => output.journal.append(progress);
    return { result: await run(session, { ...call, kill, onProgress }), headGeneration };
  } finally {
    activity.touch(session);
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

/** Counts the call in the session's gate until disposed. */
function enter(session: Session, call: ToolCall): Disposable {
  return refuseWith(() => {
    assertActive(session.row.phase, "ExecuteTool");
    assertGeneration(session, call.expectedGeneration);
    return session.gate.enter();
  });
}

/** What the check throws is a refusal before any effect. */
function refuseWith<Result>(check: () => Result): Result {
  try {
    return check();
  } catch (cause) {
    throw new NotStarted("refused", { cause });
  }
}

/** The tool of a call that its catalog entry allows. */
function check({ toolName, callId, parameters, stdin, limits = {} }: ToolCall): CatalogTool {
  const tool = findTool(toolName);
  checkCallId(callId);
  checkParameters(tool, parameters);
  if ("env" in parameters) parseVariables("params.env", parameters["env"] as Readonly<Record<string, string>>);
  checkStdin(stdin, tool.tier);
  checkLimits(limits, tool.tier);
  return tool;
}

/** The call in its canonical form. */
function payloadOf(toolName: string, { parameters, stdin, limits = {} }: ToolCall): string {
  const bounded = Object.keys(limits).length === 0 ? [] : [limits];
  return canonicalJson([toolName, parameters, Buffer.from(stdin).toString("base64"), ...bounded]);
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
