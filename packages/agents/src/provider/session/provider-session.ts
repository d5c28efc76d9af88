import { SandboxError } from "@turnbox/client";
import { systemClock } from "@turnbox/client/internal";
import type { Prepared, Provider, ProviderCall, SessionState } from "../provider.ts";
import type { SessionRecord, SessionStatus } from "../state/session-record.ts";
import { NOTHING_SYNCED, type SyncReason, type SyncResult } from "../sync/sync-types.ts";
import { CLEANUP_MS, endRuntime, type SessionOptions } from "./session-options.ts";

/** How a session is stopped. */
export interface StopOptions extends ProviderCall {
  /** `crash` brings out what it can and goes on whatever fails; `stop` keeps a runtime whose files it could not get. */
  readonly reason?: "stop" | "crash";
}

/** What a stop has brought back, and what became of the runtime. */
export interface Stopped {
  readonly sync: SyncResult;
  readonly state: SessionState;
}

/** A session with a runtime. Its owner stops it; turns are told where the profile syncs them. */
export interface ProviderSession {
  readonly prepared: Prepared;
  readonly record: SessionRecord;
  /** Before the agent takes its turn: the workspace goes in. Nothing unless the mode is `turn-bidirectional`. */
  beginTurn(options?: ProviderCall): Promise<SyncResult>;
  /** After the agent's turn: the runtime's files come out. Nothing unless the mode is `turn-bidirectional`. */
  endTurn(options?: ProviderCall): Promise<SyncResult>;
  /** Brings the files out, then ends or keeps the runtime as the profile says. A second call answers as the first. */
  stop(options?: StopOptions): Promise<Stopped>;
}

export interface SessionParts {
  readonly options: SessionOptions;
  readonly provider: Provider;
  readonly prepared: Prepared;
  readonly record: SessionRecord;
}

/** `fill` brings the workspace in, once, before the agent is launched; where that fails, the runtime goes again. */
export function createProviderSession(
  parts: SessionParts,
): ProviderSession & { fill(call: ProviderCall): Promise<void> } {
  const { options, provider, prepared } = parts;
  const { clock = systemClock, store, onWarning } = options;
  const { excludePatterns } = parts.record;
  const { syncMode } = parts.record.sandbox;
  let record = parts.record;
  let stopped: Promise<Stopped> | undefined;

  const save = async (status: SessionStatus, state: SessionState, call: ProviderCall): Promise<void> => {
    record = { ...record, status, state, updatedAt: new Date(clock.nowMs()) };
    await store.save(record, call);
  };
  const warn = (message: string): void => onWarning?.({ sessionId: record.sessionId, message });
  const sync = async (
    to: "runtime" | "workspace",
    reason: SyncReason,
    { signal }: ProviderCall,
  ): Promise<SyncResult> => {
    const wanted = { reason, excludePatterns, ...(signal === undefined ? {} : { signal }) };
    const result =
      to === "runtime"
        ? await provider.syncToRuntime(record.state, wanted)
        : await provider.syncFromRuntime(record.state, wanted);
    for (const error of result.errors) warn(error);
    return result;
  };
  const syncTurn = async (to: "runtime" | "workspace", call: ProviderCall): Promise<SyncResult> =>
    syncMode === "turn-bidirectional" ? await sync(to, "turn", call) : NOTHING_SYNCED;

  const bringOut = async (reason: "stop" | "crash", call: ProviderCall): Promise<SyncResult> => {
    if (syncMode === "none") return NOTHING_SYNCED;
    try {
      return await sync("workspace", reason, call);
    } catch (thrown) {
      const failure = SandboxError.from(thrown);
      if (reason === "stop") {
        await save("crashed", record.state, { signal: AbortSignal.timeout(CLEANUP_MS) });
        throw failure;
      }
      warn(`the files of the crashed session did not come out whole: ${failure.message}`);
      return { ...NOTHING_SYNCED, errors: [failure.message] };
    }
  };

  const stop = async ({ reason = "stop", ...call }: StopOptions): Promise<Stopped> => {
    await save("stopping", record.state, call);
    await prepared.toolHost[Symbol.asyncDispose]();
    const result = await bringOut(reason, call);
    const state = await endRuntime(provider, record, call);
    await save("stopped", state, call);
    return { sync: result, state };
  };

  return {
    prepared,
    get record() {
      return record;
    },
    fill: async (call) => {
      await save("starting", record.state, call);
      for (const warning of prepared.warnings) warn(warning);
      if (syncMode !== "none") await sync("runtime", "start", call).catch(undoStart);
      await save("active", record.state, call);
    },
    beginTurn: (call = {}) => syncTurn("runtime", call),
    endTurn: (call = {}) => syncTurn("workspace", call),
    stop: (call = {}) => {
      stopped ??= stop(call);
      // What failed may be tried again.
      stopped.catch(() => (stopped = undefined));
      return stopped;
    },
  };

  async function undoStart(thrown: unknown): Promise<never> {
    const call = { signal: AbortSignal.timeout(CLEANUP_MS) };
    try {
      await save("stopped", await endRuntime(provider, record, call), call);
    } catch (failure) {
      warn(`the runtime is left behind: ${SandboxError.from(failure).message}`);
    }
    throw SandboxError.from(thrown);
  }
}
