import { SandboxError } from "@turnbox/client";
import { systemClock } from "@turnbox/client/internal";
import type { Prepared, Provider, ProviderCall, SessionState } from "../provider.ts";
import type { SessionRecord, SessionStatus } from "../state/session-record.ts";
import { NOTHING_SYNCED, type SyncReason, type SyncResult } from "../sync/sync-types.ts";
import { CLEANUP_MS, endRuntime, type SessionOptions } from "./session-options.ts";

/** How a session is stopped. */
export interface StopOptions extends ProviderCall {
  /** `crash` brings out what it can and goes on in spite of failures; `stop` keeps a runtime whose files it could not get. */
  readonly reason?: "stop" | "crash";
}

/** What a stop has brought back, and what became of the runtime. */
export interface Stopped {
  readonly sync: SyncResult;
  readonly state: SessionState;
}

/** A session with a runtime. Its owner stops it, and calls `beginTurn` and `endTurn` if the profile syncs turns. */
export interface ProviderSession {
  readonly prepared: Prepared;
  readonly record: SessionRecord;
  /** Before the agent takes its turn: the workspace goes in. Nothing unless the mode is `turn-bidirectional`. */
  beginTurn(options?: ProviderCall): Promise<SyncResult>;
  /** After the agent's turn: the runtime's files come out. Nothing unless the mode is `turn-bidirectional`. */
  endTurn(options?: ProviderCall): Promise<SyncResult>;
  /** Brings the files out, then ends or keeps the runtime as the profile says. A second call returns what the first one did. */
  stop(options?: StopOptions): Promise<Stopped>;
}

export interface SessionParts {
  readonly options: SessionOptions;
  readonly provider: Provider;
  readonly prepared: Prepared;
  readonly record: SessionRecord;
}

/** `fill` brings the workspace in, once, before the agent is launched; if that fails, the runtime goes again. */
export const createProviderSession = (
  parts: SessionParts,
): ProviderSession & { fill(call: ProviderCall): Promise<void> } => new RuntimeSession(parts);

class RuntimeSession implements ProviderSession {
  readonly prepared: Prepared;
  readonly #options: SessionOptions;
  readonly #provider: Provider;
  #record: SessionRecord;
  #stopped: Promise<Stopped> | undefined;

  constructor({ options, provider, prepared, record }: SessionParts) {
    this.prepared = prepared;
    this.#options = options;
    this.#provider = provider;
    this.#record = record;
  }

  get record(): SessionRecord {
    return this.#record;
  }

  async fill(call: ProviderCall): Promise<void> {
    await this.#save("starting", this.#record.state, call);
    for (const warning of this.prepared.warnings) this.#warn(warning);
    if (this.#syncMode !== "none")
      await this.#sync("runtime", "start", call).catch((thrown: unknown) => this.#undoStart(thrown));
    await this.#save("active", this.#record.state, call);
  }

  async beginTurn(call: ProviderCall = {}): Promise<SyncResult> {
    return await this.#syncTurn("runtime", call);
  }

  async endTurn(call: ProviderCall = {}): Promise<SyncResult> {
    return await this.#syncTurn("workspace", call);
  }

  stop(call: StopOptions = {}): Promise<Stopped> {
    this.#stopped ??= this.#stop(call);
    // What failed may be tried again.
    this.#stopped.catch(() => (this.#stopped = undefined));
    return this.#stopped;
  }

  get #syncMode(): SessionRecord["sandbox"]["syncMode"] {
    return this.#record.sandbox.syncMode;
  }

  async #save(status: SessionStatus, state: SessionState, call: ProviderCall): Promise<void> {
    const { clock = systemClock, store } = this.#options;
    this.#record = { ...this.#record, status, state, updatedAt: new Date(clock.nowMs()) };
    await store.save(this.#record, call);
  }

  #warn(message: string): void {
    this.#options.onWarning?.({ sessionId: this.#record.sessionId, message });
  }

  async #sync(to: "runtime" | "workspace", reason: SyncReason, { signal }: ProviderCall): Promise<SyncResult> {
    const { state, excludePatterns } = this.#record;
    const wanted = { reason, excludePatterns, ...(signal === undefined ? {} : { signal }) };
    const result =
      to === "runtime"
        ? await this.#provider.syncToRuntime(state, wanted)
        : await this.#provider.syncFromRuntime(state, wanted);
    for (const error of result.errors) this.#warn(error);
    return result;
  }

  async #syncTurn(to: "runtime" | "workspace", call: ProviderCall): Promise<SyncResult> {
    return this.#syncMode === "turn-bidirectional" ? await this.#sync(to, "turn", call) : NOTHING_SYNCED;
  }

  async #stop({ reason = "stop", ...call }: StopOptions): Promise<Stopped> {
    await this.#save("stopping", this.#record.state, call);
    await this.prepared.toolHost[Symbol.asyncDispose]();
    const result = await this.#bringOut(reason, call);
    const state = await endRuntime(this.#provider, this.#record, call);
    await this.#save("stopped", state, call);
    return { sync: result, state };
  }

  async #bringOut(reason: "stop" | "crash", call: ProviderCall): Promise<SyncResult> {
    if (this.#syncMode === "none") return NOTHING_SYNCED;
    try {
      return await this.#sync("workspace", reason, call);
    } catch (thrown) {
      const failure = SandboxError.from(thrown);
      if (reason === "stop") {
        await this.#save("crashed", this.#record.state, { signal: AbortSignal.timeout(CLEANUP_MS) });
        throw failure;
      }
      this.#warn(`the files of the crashed session did not come out whole: ${failure.message}`);
      return { ...NOTHING_SYNCED, errors: [failure.message] };
    }
  }

  async #undoStart(thrown: unknown): Promise<never> {
    const call = { signal: AbortSignal.timeout(CLEANUP_MS) };
    try {
      await this.#save("stopped", await endRuntime(this.#provider, this.#record, call), call);
    } catch (failure) {
      this.#warn(`the runtime is left behind: ${SandboxError.from(failure).message}`);
    }
    throw SandboxError.from(thrown);
  }
}
