import { randomUUID } from "node:crypto";
import { type Clock, type HostClients, type HostSession, openHostSession, SandboxError } from "@turnbox/client";
import { parseSessionId, systemClock } from "@turnbox/client/internal";
import { asEnvironment, assertCapability } from "../environment-error.ts";
import type { EnvironmentCall, EnvironmentState, ExecutionEnvironment } from "../execution-environment.ts";
import { createSessionLife, STATE_OF_PHASE } from "../session/session-life.ts";
import { createSession, destroySession, negotiate, type SessionMaker } from "./create-session.ts";
import { executeNativeTool } from "./execute-native-tool.ts";
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
   * Binds to a session that somebody else made, instead of `create`, to run tools in it. Everything else stays with its
   * owner: pause, resume, snapshots, rollback and destroy are CAPABILITY_NOT_SUPPORTED. SESSION_NOT_FOUND where there is none.
   */
  attachSession(sessionId: string, options?: EnvironmentCall): Promise<void>;
}

/**
 * A session on a sandbox-host. The host keeps its state, so nothing is remembered here but which session it is and whether
 * this environment ended it. Tool output is streamed; a connection that breaks goes on at the offset that was reached.
 */
export function createNativeSandboxEnvironment({
  host,
  config: expected = defaultConfig(),
  clock = systemClock,
}: NativeSandboxOptions): NativeSandboxEnvironment {
  const life = createSessionLife();
  let capabilities = expectedCapabilities(expected);
  let live: { readonly session: HostSession; readonly destroyKey: string } | undefined;

  const bind = (session: HostSession): void => {
    live = { session, destroyKey: randomUUID() };
  };
  const makerOf = (raw: string): SessionMaker => ({
    expected,
    session: openHostSession({ host, sessionId: parseSessionId(raw, "sessionId"), clock }),
  });
  const bound = (): HostSession => {
    if (live === undefined) throw new SandboxError("INTERNAL", "a live session is always bound");
    return live.session;
  };
  const assertHas = (capability: Parameters<typeof assertCapability>[1]): void => {
    const why = capabilities.lifecycle
      ? "the host does not have it"
      : "it is attached, and this is for the session's owner";
    assertCapability(capabilities, capability, why);
  };
  /** One change of the live session, after the ones before it. */
  const change = <T>(
    what: string,
    make: (session: HostSession, options: { readonly signal: AbortSignal }) => Promise<T>,
    call: EnvironmentCall | undefined,
  ): Promise<T> => life.inTurn(what, (signal) => asEnvironment(() => make(bound(), { signal })), call);
  const ask = async (signal: AbortSignal | undefined): Promise<EnvironmentState> => {
    try {
      return await bound().state({ timeoutMs: STATE_TIMEOUT_MS, ...(signal && { signal }) });
    } catch {
      return "failed";
    }
  };

  return {
    create: async (config, call) => {
      await life.create(
        (signal) =>
          asEnvironment(async () => {
            const maker = makerOf(config.sessionId);
            capabilities = toEnvironmentCapabilities(await createSession(maker, config, signal));
            bind(maker.session);
          }),
        call,
      );
    },
    attachSession: async (sessionId, call) => {
      await life.create(
        (signal) =>
          asEnvironment(async () => {
            const maker = makerOf(sessionId);
            const found = await negotiate(maker, signal);
            await maker.session.find({ signal });
            const none = { pause: false, snapshots: false, rollback: false, lifecycle: false };
            capabilities = { ...toEnvironmentCapabilities(found), ...none };
            bind(maker.session);
          }),
        call,
      );
    },
    pause: async (call) => {
      assertHas("pause");
      await change("pause", (session, options) => session.pause(options), call);
    },
    resume: async (call) => {
      assertHas("pause");
      await change("resume", (session, options) => session.resume(options), call);
    },
    destroy: async (call) => {
      assertHas("lifecycle");
      await life.destroy(
        () => asEnvironment(async () => live && (await destroySession(live.session, live.destroyKey))),
        call,
      );
    },
    executeTool: (request, onProgress = () => undefined, call) =>
      life.run(
        "a tool call",
        (signal) => asEnvironment(() => executeNativeTool(bound(), request, { onProgress, signal })),
        call,
      ),
    state: async ({ signal } = {}) => {
      if (life.phase !== "live") return STATE_OF_PHASE[life.phase];
      return await ask(signal);
    },
    capabilities: () => capabilities,
    createSnapshot: async (name, call) => {
      assertHas("snapshots");
      const take = (session: HostSession, options: { readonly signal: AbortSignal }) => session.snapshot(name, options);
      const { id, createdAt } = await change("createSnapshot", take, call);
      return { id, name, createdAt };
    },
    rollback: async (snapshotId, call) => {
      assertHas("rollback");
      await change("rollback", (session, own) => session.rollback(snapshotId, { tools: "wait", ...own }), call);
    },
  };
}
