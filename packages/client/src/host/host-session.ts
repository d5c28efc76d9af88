import { randomUUID } from "node:crypto";
import { type Clock, createDeadline, SandboxError, systemClock } from "@turnbox/core";
import { OnTimeout, ToolsPolicy } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import type { HostClients } from "../client.ts";
import type { CallOptions, KeyedOptions } from "../sandbox/call.ts";
import { createHostCalls, type HostCalls } from "../sandbox/host-call.ts";
import { DEFAULT_TIMEOUT_MS } from "../sandbox/link/default-timeouts.ts";
import { createPatience } from "../sandbox/link/patience.ts";
import { toWirePolicy } from "../sandbox/network/network-policy.ts";
import type { SandboxCapabilities, SandboxState } from "../sandbox/sandbox-info.ts";
import type { Sandbox } from "../sandbox/sandbox.ts";
import { toCapabilities, toState } from "../sandbox/to-sandbox-info.ts";
import { createTools } from "../sandbox/tool/sandbox-tools.ts";
import { createTurns } from "../sandbox/turn/sandbox-turns.ts";
import { toWireCount, toWireUint32 } from "../sandbox/wire/number.ts";
import { toWireDuration } from "../sandbox/wire/time.ts";
import type { CreateOptions } from "../turnbox/turnbox-types.ts";

/** The session that is wanted. */
export interface HostSessionOptions extends Omit<CreateOptions, "name" | "template"> {
  /** `template` or `template@version`; the host's default unless given. */
  readonly base?: string;
  /** That it will serve. */
  readonly ports?: readonly number[];
}

/**
 * A session on a sandbox-host of one's own choice, without an orchestrator between. Failures are waited out on the connection
 * that there is. Nothing is sent before the first call.
 */
export interface HostSession
  extends Pick<Sandbox, "sessionId" | "bash" | "bashStream" | "tool" | "toolStream" | "tools">,
    Pick<Sandbox, "turn" | "turns" | "snapshot" | "snapshots" | "deleteSnapshot" | "rollback" | "undo"> {
  /** What the host can do. Asked once: a failure is not waited out. */
  capabilities(options?: CallOptions): Promise<SandboxCapabilities>;
  /** What the session is doing. Asked once: a failure is not waited out. */
  state(options?: CallOptions): Promise<SandboxState>;
  /** Makes sure that it is there; `SESSION_NOT_FOUND` otherwise. */
  find(options?: CallOptions): Promise<void>;
  /** Makes it; returns what its host can do. */
  create(options?: HostSessionOptions): Promise<SandboxCapabilities>;
  /** Waits for running tools first. */
  pause(options?: KeyedOptions): Promise<void>;
  resume(options?: KeyedOptions): Promise<void>;
  destroy(options?: KeyedOptions): Promise<void>;
}

/** Which session. */
export interface OpenHostSession {
  /** By `connectHost`. They stay the caller's, who closes them. */
  readonly host: HostClients;
  readonly sessionId: string;
  /** Time; the system's unless given. */
  readonly clock?: Clock;
}

/** The handle of a session on a host. */
export function openHostSession({ host, sessionId, clock = systemClock }: OpenHostSession): HostSession {
  const calls = createDirectCalls(host, { sessionId, clock });
  const read = { timeoutMs: DEFAULT_TIMEOUT_MS.read };
  const change = { timeoutMs: DEFAULT_TIMEOUT_MS.change };
  const once = async <T>(options: CallOptions, ask: (signal: AbortSignal) => Promise<T>): Promise<T> => {
    const { signal, timeoutMs: ms = DEFAULT_TIMEOUT_MS.read } = options;
    using deadline = createDeadline({ clock, ms, ...(signal && { signal }) });
    return await ask(deadline.signal);
  };
  const keyed = ({ idempotencyKey = randomUUID() }: KeyedOptions) => ({ sessionId, idempotencyKey });
  return {
    sessionId,
    ...createTools(calls),
    ...createTurns(calls),
    capabilities: (options = {}) =>
      once(options, async (signal) => present((await host.host.getCapabilities({}, { signal })).capabilities)),
    state: (options = {}) =>
      once(options, async (signal) => {
        const { session } = await host.sessions.getSession({ sessionId }, { signal });
        if (session === undefined) throw new SandboxError("INTERNAL", "the host's answer has no session");
        return toState(session.state);
      }),
    find: async (options) => {
      await calls.call({ options, ...read }, (_, { signal }) => host.sessions.getSession({ sessionId }, { signal }));
    },
    create: async (options = {}) => {
      const request = { ...keyed(options), ...toSession(options) };
      const { capabilities } = await calls.call({ options, ...change }, (_, { signal }) =>
        host.sessions.createSession(request, { signal }),
      );
      return present(capabilities);
    },
    pause: async (options = {}) => {
      const request = { ...keyed(options), tools: ToolsPolicy.WAIT };
      await calls.call({ options, ...change }, (_, { signal }) => host.sessions.pauseSession(request, { signal }));
    },
    resume: async (options = {}) => {
      const request = keyed(options);
      await calls.call({ options, ...change }, (_, { signal }) => host.sessions.resumeSession(request, { signal }));
    },
    destroy: async (options = {}) => {
      const request = keyed(options);
      await calls.call({ options, ...change }, (_, { signal }) => host.sessions.destroySession(request, { signal }));
    },
  };
}

/** Calls on a host whose clients belong to another owner: failures are waited out, on the same connection. */
function createDirectCalls(
  host: HostClients,
  { sessionId, clock }: { readonly sessionId: string; readonly clock: Clock },
): HostCalls {
  const sandbox = { sandboxId: sessionId, sessionId, host, [Symbol.dispose]: () => undefined };
  return createHostCalls(
    {
      sandboxId: sessionId,
      // Never closed here: its clients belong to another owner.
      signal: new AbortController().signal,
      use: async (call, { signal, repeat = "keyed" }) => {
        const patience = createPatience(clock);
        for (;;) {
          try {
            signal.throwIfAborted();
            return await call(sandbox, patience.progress);
          } catch (thrown) {
            await patience.wait(SandboxError.from(thrown), { repeat, signal });
          }
        }
      },
      [Symbol.dispose]: () => undefined,
    },
    { sessionId, clock },
  );
}

function present(capabilities: Parameters<typeof toCapabilities>[0] | undefined): SandboxCapabilities {
  if (capabilities === undefined) throw new SandboxError("INTERNAL", "the host's answer has no capabilities");
  return toCapabilities(capabilities);
}

function toSession(options: HostSessionOptions) {
  const { base = "", labels = {}, env = {}, ports = [], quotaBytes, ttlMs, idleTimeoutMs, onTimeout } = options;
  const { resources, network } = options;
  return {
    base,
    labels: { ...labels },
    env: { ...env },
    ports: [...ports],
    quotaBytes: toWireCount("quotaBytes", quotaBytes),
    onTimeout: onTimeout === "pause" ? OnTimeout.PAUSE : OnTimeout.DESTROY,
    ...(ttlMs === undefined ? {} : { ttl: toWireDuration("ttlMs", ttlMs) }),
    ...(idleTimeoutMs === undefined ? {} : { idleTimeout: toWireDuration("idleTimeoutMs", idleTimeoutMs) }),
    ...(resources === undefined ? {} : { resources: toResources(resources) }),
    ...(network === undefined ? {} : { networkPolicy: toWirePolicy(network) }),
  };
}

const toResources = ({ cpus = 0, memoryBytes, pids = 0 }: NonNullable<CreateOptions["resources"]>) => ({
  cpus,
  memoryBytes: toWireCount("resources.memoryBytes", memoryBytes),
  pids: toWireUint32("resources.pids", pids),
});
