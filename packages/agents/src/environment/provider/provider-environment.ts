import { SandboxError } from "@turnbox/client";
import { invalidArgument, parseSessionId, systemClock } from "@turnbox/client/internal";
import type { Resolved } from "../../provider/provider.ts";
import type { ProviderSession } from "../../provider/session/provider-session.ts";
import type { SessionOptions } from "../../provider/session/session-options.ts";
import { startSession } from "../../provider/session/start-session.ts";
import type { PermissionMode } from "../../provider/tool-host/permission.ts";
import { asEnvironment, notSupported } from "../environment-error.ts";
import type { EnvironmentCapabilities, ExecutionEnvironment } from "../execution-environment.ts";
import { createSessionLife, STATE_OF_PHASE } from "../session/session-life.ts";
import { createToolGate } from "../session/tool-gate.ts";
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
export function createProviderEnvironment(options: ProviderEnvironmentOptions): ExecutionEnvironment {
  const { profile, localRootDir, workspaceId = "", permissions = "approve-all", clock = systemClock } = options;
  const life = createSessionLife();
  const gate = createToolGate({ clock, drainTimeoutMs: 0 });
  let session: ProviderSession | undefined;
  const capabilities: EnvironmentCapabilities = {
    snapshots: false,
    rollback: false,
    pause: false,
    lifecycle: true,
    streamingProgress: true,
    tierRouting: false,
    isolation: profile.backend === "local" ? "none" : "provider",
    maxDurationMs: undefined,
  };
  const started = (): ProviderSession => {
    if (session === undefined) throw new SandboxError("INTERNAL", "a live session has always been started");
    return session;
  };

  return {
    create: async (config, call) => {
      await life.create(
        (signal) =>
          asEnvironment(async () => {
            parseSessionId(config.sessionId, "sessionId");
            if (config.baseImage !== undefined && config.baseImage !== "")
              throw notSupported("baseImage", "the profile decides what a provider's runtime begins as");
            for (const name of Object.keys(config.options ?? {}))
              throw invalidArgument(`options.${name}`, "is not known to an environment over a provider");
            const request = {
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
            session = await startSession(options, request, { signal });
          }),
        call,
      );
    },
    pause: async () => {
      throw notSupported("pause", "providers do not have it");
    },
    resume: async () => {
      throw notSupported("pause", "providers do not have it");
    },
    destroy: async (call) => {
      await life.destroy(
        () =>
          asEnvironment(async () => {
            await gate.settled();
            await started().stop();
          }),
        call,
      );
    },
    executeTool: (request, onProgress = () => undefined, call) =>
      life.run(
        "a tool call",
        (signal) =>
          asEnvironment(() =>
            gate.pass(() => {
              const { launcher, toolHost } = started().prepared;
              const place = { launcher, toolHost, env: profile.env, clock };
              const { timeoutMs } = request;
              return runTool(PROVIDER_TOOLS, place, { request, clock, call: { signal, timeoutMs, onProgress } });
            }),
          ),
        call,
      ),
    state: async () => STATE_OF_PHASE[life.phase],
    capabilities: () => capabilities,
    createSnapshot: async () => {
      throw notSupported("snapshots", "providers do not have them");
    },
    rollback: async () => {
      throw notSupported("rollback", "providers do not have it");
    },
  };
}
