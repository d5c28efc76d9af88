import { randomUUID } from "node:crypto";
import { type Clock, type HostClients, type HostSession, openHostSession, SandboxError } from "@turnbox/client";
import { parseSessionId, systemClock } from "@turnbox/client/internal";
import { asEnvironment, assertCapability } from "../environment-error.ts";
import type {
  EnvironmentCall,
  EnvironmentCapabilities,
  EnvironmentConfig,
  EnvironmentState,
  ExecutionEnvironment,
  SnapshotInfo,
  ToolProgress,
  ToolRequest,
  ToolResponse,
} from "../execution-environment.ts";
import { createSessionLife, STATE_OF_PHASE } from "../session/session-life.ts";
import { createSession, destroySession, negotiate, type SessionMaker } from "./create-session.ts";
import {
  defaultConfig,
  expectedCapabilities,
  type NativeSandboxConfig,
  toEnvironmentCapabilities,
} from "./native-sandbox-config.ts";

/** How long `state` waits for the host. */
const STATE_TIMEOUT_MS = 5000;

/** What a native environment is made with. */
export interface NativeSandboxOptions {
  /** Of the sandbox-host, by `connectHost`. They stay the caller's, who closes them. */
  readonly host: HostClients;
  /** `defaultConfig()` unless given. */
  readonly config?: NativeSandboxConfig;
  readonly clock?: Clock;
}

/** An environment on a host of one's own choice. */
export interface NativeSandboxEnvironment extends ExecutionEnvironment {
  /**
   * Binds to a session that exists already, instead of `create`, to run tools in it. Everything else stays with its
   * owner: pause, resume, snapshots, rollback and destroy are CAPABILITY_NOT_SUPPORTED. SESSION_NOT_FOUND if there is none.
   */
  attachSession(sessionId: string, options?: EnvironmentCall): Promise<void>;
}

/**
 * A session on a sandbox-host. The host keeps its state, so nothing is remembered here but which session it is and whether
 * this environment ended it. Tool output is streamed; a connection that breaks goes on at the offset that was reached.
 */
export const createNativeSandboxEnvironment = (options: NativeSandboxOptions): NativeSandboxEnvironment =>
  new HostEnvironment(options);

type OwnSignal = { readonly signal: AbortSignal };

class HostEnvironment implements NativeSandboxEnvironment {
  readonly #host: HostClients;
  readonly #expected: NativeSandboxConfig;
  readonly #clock: Clock;
  readonly #life = createSessionLife();
  #capabilities: EnvironmentCapabilities;
  #live: { readonly session: HostSession; readonly destroyKey: string } | undefined;

  constructor({ host, config = defaultConfig(), clock = systemClock }: NativeSandboxOptions) {
    this.#host = host;
    this.#expected = config;
    this.#clock = clock;
    this.#capabilities = expectedCapabilities(config);
  }

  async create(config: EnvironmentConfig, call?: EnvironmentCall): Promise<void> {
    const make = async (signal: AbortSignal): Promise<void> => {
      const maker = this.#makerOf(config.sessionId);
      this.#capabilities = toEnvironmentCapabilities(await createSession(maker, config, signal));
      this.#bind(maker.session);
    };
    await this.#life.create((signal) => asEnvironment(() => make(signal)), call);
  }

  async attachSession(sessionId: string, call?: EnvironmentCall): Promise<void> {
    const attach = async (signal: AbortSignal): Promise<void> => {
      const maker = this.#makerOf(sessionId);
      const found = await negotiate(maker, signal);
      await maker.session.find({ signal });
      const none = { pause: false, snapshots: false, rollback: false, lifecycle: false };
      this.#capabilities = { ...toEnvironmentCapabilities(found), ...none };
      this.#bind(maker.session);
    };
    await this.#life.create((signal) => asEnvironment(() => attach(signal)), call);
  }

  async pause(call?: EnvironmentCall): Promise<void> {
    this.#assertHas("pause");
    await this.#change("pause", (session, options) => session.pause(options), call);
  }

  async resume(call?: EnvironmentCall): Promise<void> {
    this.#assertHas("pause");
    await this.#change("resume", (session, options) => session.resume(options), call);
  }

  async destroy(call?: EnvironmentCall): Promise<void> {
    this.#assertHas("lifecycle");
    const remove = async (): Promise<void> => {
      if (this.#live !== undefined) await destroySession(this.#live.session, this.#live.destroyKey);
    };
    await this.#life.destroy(() => asEnvironment(remove), call);
  }

  async executeTool(
    request: ToolRequest,
    onProgress: (progress: ToolProgress) => void = () => undefined,
    call?: EnvironmentCall,
  ): Promise<ToolResponse> {
    const run = (signal: AbortSignal) => runTool(this.#bound(), request, { onProgress, signal });
    return await this.#life.run("a tool call", (signal) => asEnvironment(() => run(signal)), call);
  }

  async state({ signal }: EnvironmentCall = {}): Promise<EnvironmentState> {
    if (this.#life.phase !== "live") return STATE_OF_PHASE[this.#life.phase];
    try {
      return await this.#bound().state({ timeoutMs: STATE_TIMEOUT_MS, ...(signal && { signal }) });
    } catch {
      return "failed";
    }
  }

  capabilities(): EnvironmentCapabilities {
    return this.#capabilities;
  }

  async createSnapshot(name: string, call?: EnvironmentCall): Promise<SnapshotInfo> {
    this.#assertHas("snapshots");
    const take = (session: HostSession, options: OwnSignal) => session.snapshot(name, options);
    const { id, createdAt } = await this.#change("createSnapshot", take, call);
    return { id, name, createdAt };
  }

  async rollback(snapshotId: string, call?: EnvironmentCall): Promise<void> {
    this.#assertHas("rollback");
    await this.#change("rollback", (session, own) => session.rollback(snapshotId, { tools: "wait", ...own }), call);
  }

  #makerOf(raw: string): SessionMaker {
    const sessionId = parseSessionId(raw, "sessionId");
    return {
      expected: this.#expected,
      session: openHostSession({ host: this.#host, sessionId, clock: this.#clock }),
    };
  }

  #bind(session: HostSession): void {
    this.#live = { session, destroyKey: randomUUID() };
  }

  #bound(): HostSession {
    if (this.#live === undefined) throw new SandboxError("INTERNAL", "a live session is always bound");
    return this.#live.session;
  }

  #assertHas(capability: Parameters<typeof assertCapability>[1]): void {
    const why = this.#capabilities.lifecycle
      ? "the host does not have it"
      : "it is attached, and this is for the session's owner";
    assertCapability(this.#capabilities, capability, why);
  }

  /** One change of the live session, after the ones before it. */
  async #change<T>(
    what: string,
    make: (session: HostSession, options: OwnSignal) => Promise<T>,
    call: EnvironmentCall | undefined,
  ): Promise<T> {
    return await this.#life.inTurn(what, (signal) => asEnvironment(() => make(this.#bound(), { signal })), call);
  }
}

/** Runs a tool by the stream call. What `onProgress` throws ends the call on the host too. */
async function runTool(
  session: HostSession,
  { toolName, toolCallId, params, timeoutMs }: ToolRequest,
  { onProgress, signal }: { readonly onProgress: (progress: ToolProgress) => void; readonly signal: AbortSignal },
): Promise<ToolResponse> {
  const limits = timeoutMs === undefined ? {} : { limits: { timeoutMs } };
  const running = session.toolStream(toolName, params, { toolCallId, ...limits, signal });
  for await (const chunk of running) onProgress(chunk);
  return await running.result();
}
