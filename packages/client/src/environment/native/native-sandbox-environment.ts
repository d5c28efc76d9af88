import { randomUUID } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { type Clock, createDeadline, parseSessionId, SandboxError, systemClock } from "@turnbox/core";
import { SandboxSchema } from "@turnbox/protocol/turnbox/control/v1/sandbox_control_pb";
import { ToolsPolicy } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import type { HostClients } from "../../client.ts";
import type { HostCalls } from "../../sandbox/host-call.ts";
import { DEFAULT_TIMEOUT_MS } from "../../sandbox/link/default-timeouts.ts";
import { toSandboxInfo } from "../../sandbox/to-sandbox-info.ts";
import { toSnapshot } from "../../sandbox/turn/to-snapshot.ts";
import { asEnvironment, assertCapability } from "../environment-error.ts";
import type { EnvironmentCall, EnvironmentState, ExecutionEnvironment } from "../execution-environment.ts";
import { createSessionLife, STATE_OF_PHASE } from "../session/session-life.ts";
import { createSession, destroySession, negotiate, type SessionMaker } from "./create-session.ts";
import { executeNativeTool } from "./execute-native-tool.ts";
import { createNativeCalls } from "./host-link.ts";
import {
  defaultConfig,
  expectedCapabilities,
  type NativeSandboxConfig,
  toEnvironmentCapabilities,
} from "./native-sandbox-config.ts";

/** How long `state` waits for the host. */
const STATE_TIMEOUT_MS = 5000;

interface ChangeRequest {
  readonly sessionId: string;
  readonly idempotencyKey: string;
}

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
  let session: { readonly calls: HostCalls; readonly destroyKey: string } | undefined;

  const bind = (calls: HostCalls): void => {
    session = { calls, destroyKey: randomUUID() };
  };
  const makerOf = (sessionId: string): SessionMaker => ({
    host,
    expected,
    calls: createNativeCalls({ host, sessionId, clock }),
  });
  const bound = (): HostCalls => {
    if (session === undefined) throw new SandboxError("INTERNAL", "a live session is always bound");
    return session.calls;
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
    make: (clients: HostClients, request: ChangeRequest, options: { readonly signal: AbortSignal }) => Promise<T>,
    call: EnvironmentCall | undefined,
  ): Promise<T> =>
    life.inTurn(
      what,
      (signal) =>
        asEnvironment(() => {
          const request = { sessionId: bound().sessionId, idempotencyKey: randomUUID() };
          return bound().call({ options: { signal }, timeoutMs: DEFAULT_TIMEOUT_MS.change }, (sandbox, context) =>
            make(sandbox.host, request, { signal: context.signal }),
          );
        }),
      call,
    );
  const ask = async (signal: AbortSignal | undefined): Promise<EnvironmentState> => {
    using deadline = createDeadline({ clock, ms: STATE_TIMEOUT_MS, ...(signal && { signal }) });
    try {
      const { sessionId } = bound();
      const { session: found } = await host.sessions.getSession({ sessionId }, { signal: deadline.signal });
      return found === undefined ? "failed" : toSandboxInfo(create(SandboxSchema, { session: found })).state;
    } catch {
      return "failed";
    }
  };

  return {
    create: async (config, call) => {
      await life.create(
        (signal) =>
          asEnvironment(async () => {
            const maker = makerOf(parseSessionId(config.sessionId, "sessionId"));
            capabilities = toEnvironmentCapabilities(await createSession(maker, config, signal));
            bind(maker.calls);
          }),
        call,
      );
    },
    attachSession: async (sessionId, call) => {
      await life.create(
        (signal) =>
          asEnvironment(async () => {
            const maker = makerOf(parseSessionId(sessionId, "sessionId"));
            const found = await negotiate(maker, signal);
            await maker.calls.call({ options: { signal }, timeoutMs: DEFAULT_TIMEOUT_MS.read }, (sandbox, context) =>
              sandbox.host.sessions.getSession({ sessionId }, { signal: context.signal }),
            );
            const none = { pause: false, snapshots: false, rollback: false, lifecycle: false };
            capabilities = { ...toEnvironmentCapabilities(found), ...none };
            bind(maker.calls);
          }),
        call,
      );
    },
    pause: async (call) => {
      assertHas("pause");
      await change(
        "pause",
        (clients, request, options) => clients.sessions.pauseSession({ ...request, tools: ToolsPolicy.WAIT }, options),
        call,
      );
    },
    resume: async (call) => {
      assertHas("pause");
      await change("resume", (clients, request, options) => clients.sessions.resumeSession(request, options), call);
    },
    destroy: async (call) => {
      assertHas("lifecycle");
      await life.destroy(
        () => asEnvironment(async () => session && (await destroySession(session.calls, session.destroyKey))),
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
      const { snapshot } = await change(
        "createSnapshot",
        (clients, request, options) => clients.snapshots.createSnapshot({ ...request, name }, options),
        call,
      );
      const { id, createdAt } = toSnapshot(snapshot);
      return { id, name, createdAt };
    },
    rollback: async (snapshotId, call) => {
      assertHas("rollback");
      await change(
        "rollback",
        (clients, request, options) =>
          clients.snapshots.rollbackSession({ ...request, snapshotId, tools: ToolsPolicy.WAIT }, options),
        call,
      );
    },
  };
}
