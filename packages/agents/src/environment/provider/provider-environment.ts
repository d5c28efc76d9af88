import { type Clock, SandboxError } from "@turnbox/client";
import { invalidArgument, parseSessionId, systemClock } from "@turnbox/client/internal";
import type { Resolved } from "../../provider/provider.ts";
import type { ProviderSession } from "../../provider/session/provider-session.ts";
import type { SessionOptions } from "../../provider/session/session-options.ts";
import { type StartRequest, startSession } from "../../provider/session/start-session.ts";
import type { PermissionMode } from "../../provider/tool-host/permission.ts";
import { asEnvironment, notSupported } from "../environment-error.ts";
import type {
  EnvironmentCall,
  EnvironmentCapabilities,
  EnvironmentConfig,
  EnvironmentState,
  ExecutionEnvironment,
  ToolProgress,
  ToolRequest,
  ToolResponse,
} from "../execution-environment.ts";
import { createSessionLife, STATE_OF_PHASE } from "../session/session-life.ts";
import { createToolGate, type ToolGate } from "../session/tool-gate.ts";
import { runTool } from "../tool/tool-set.ts";
import { PROVIDER_TOOLS } from "./provider-tools.ts";

/** What an environment over a provider is made with. */
export interface ProviderEnvironmentOptions extends SessionOptions {
  /** The profile decides on the provider and on what becomes of the files. */
  readonly profile: Resolved;
  /** The workspace on this machine. */
  readonly localRootDir: string;
  readonly workspaceId?: string;
  readonly permissions?: PermissionMode;
}

/** A runtime is made for an agent; an environment starts its tools one by one. */
const NO_AGENT = "true";

/**
 * A session whose tools go through what a provider prepared: its launcher and its tool host. `create` fills the runtime as
 * the profile's sync mode says, `destroy` brings the files out and ends it. The profile stands for the base image. A
 * provider knows neither pause nor snapshots.
 */
export const createProviderEnvironment = (options: ProviderEnvironmentOptions): ExecutionEnvironment =>
  new ProviderEnvironment(options);

class ProviderEnvironment implements ExecutionEnvironment {
  readonly #options: ProviderEnvironmentOptions;
  readonly #clock: Clock;
  readonly #life = createSessionLife();
  readonly #gate: ToolGate;
  readonly #capabilities: EnvironmentCapabilities;
  #session: ProviderSession | undefined;

  constructor(options: ProviderEnvironmentOptions) {
    const { clock = systemClock, profile } = options;
    this.#options = options;
    this.#clock = clock;
    this.#gate = createToolGate({ clock, drainTimeoutMs: 0 });
    this.#capabilities = {
      snapshots: false,
      rollback: false,
      pause: false,
      lifecycle: true,
      streamingProgress: true,
      tierRouting: false,
      isolation: profile.backend === "local" ? "none" : "provider",
      maxDurationMs: undefined,
    };
  }

  async create(config: EnvironmentConfig, call?: EnvironmentCall): Promise<void> {
    const start = async (signal: AbortSignal): Promise<void> => {
      const request = toStartRequest(this.#options, config);
      this.#session = await startSession(this.#options, request, { signal });
    };
    await this.#life.create((signal) => asEnvironment(() => start(signal)), call);
  }

  async pause(): Promise<never> {
    throw notSupported("pause", "providers do not have it");
  }

  async resume(): Promise<never> {
    throw notSupported("pause", "providers do not have it");
  }

  async destroy(call?: EnvironmentCall): Promise<void> {
    const stop = async (): Promise<void> => {
      await this.#gate.settled();
      await this.#started().stop();
    };
    await this.#life.destroy(() => asEnvironment(stop), call);
  }

  async executeTool(
    request: ToolRequest,
    onProgress: (progress: ToolProgress) => void = () => undefined,
    call?: EnvironmentCall,
  ): Promise<ToolResponse> {
    const clock = this.#clock;
    const run = async (signal: AbortSignal): Promise<ToolResponse> => {
      const { launcher, toolHost } = this.#started().prepared;
      const target = { launcher, toolHost, env: this.#options.profile.env, clock };
      const { timeoutMs } = request;
      return await runTool(PROVIDER_TOOLS, target, { request, clock, call: { signal, timeoutMs, onProgress } });
    };
    return await this.#life.run(
      "a tool call",
      (signal) => asEnvironment(() => this.#gate.pass(() => run(signal))),
      call,
    );
  }

  async state(): Promise<EnvironmentState> {
    return STATE_OF_PHASE[this.#life.phase];
  }

  capabilities(): EnvironmentCapabilities {
    return this.#capabilities;
  }

  async createSnapshot(): Promise<never> {
    throw notSupported("snapshots", "providers do not have them");
  }

  async rollback(): Promise<never> {
    throw notSupported("rollback", "providers do not have it");
  }

  #started(): ProviderSession {
    if (this.#session === undefined) throw new SandboxError("INTERNAL", "a live session has always been started");
    return this.#session;
  }
}

function toStartRequest(options: ProviderEnvironmentOptions, config: EnvironmentConfig): StartRequest {
  const { profile, localRootDir, workspaceId = "", permissions = "approve-all" } = options;
  parseSessionId(config.sessionId, "sessionId");
  if (config.baseImage !== undefined && config.baseImage !== "")
    throw notSupported("baseImage", "the profile decides what a provider's runtime begins as");
  for (const name of Object.keys(config.options ?? {}))
    throw invalidArgument(`options.${name}`, "is not known to an environment over a provider");
  return {
    sessionId: config.sessionId,
    workspaceId,
    localRootDir,
    localAdditionalDirs: [],
    sandbox: profile,
    agentCommand: NO_AGENT,
    agentEnv: {},
    permissions,
    resumeAcpState: "",
  };
}
