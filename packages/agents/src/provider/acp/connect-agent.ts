import type {
  ClientContext,
  InitializeRequest,
  InitializeResponse,
  McpServer,
  NewSessionRequest,
  SessionNotification,
} from "@agentclientprotocol/sdk";
import { type CallOptions, type Clock, SandboxError } from "@turnbox/client";
import { createDeadline, systemClock } from "@turnbox/client/internal";
import type { Handle } from "../launch/launcher.ts";
import { orAborted } from "../launch/stop-gently.ts";
import type { ToolHost } from "../tool-host/tool-host.ts";
import { type AgentSession, createAgentSession, type Turn } from "./agent-session.ts";
import { given } from "./given.ts";
import { type AskPermission, createAgentPermissions } from "./agent-permissions.ts";
import { serveTools } from "./serve-tools.ts";
import type { Acp } from "./acp.ts";
import { fromRequestError } from "./request-error.ts";

/** An agent's process, and who serves its requests. */
export interface ConnectAgentOptions extends CallOptions {
  readonly handle: Handle;
  readonly toolHost: ToolHost;
  /** Told everything that the agent says, in its order. What it throws is ignored. */
  readonly onUpdate?: (notification: SessionNotification) => void;
  /** Asked if the mode leaves a decision open; without it that is refused. */
  readonly onPermission?: AskPermission;
  /** How this side introduces itself; it does not unless given. */
  readonly clientInfo?: { readonly name: string; readonly version: string };
  readonly clock?: Clock;
}

/** How a session of an agent begins. */
export interface NewSessionOptions extends CallOptions {
  /** The tool host's root unless given. */
  readonly cwd?: string;
  readonly mcpServers?: readonly McpServer[];
}

/** A connection to an agent over its stdio. Closing it leaves the program and the tool host to their owners. */
export interface AgentConnection extends AsyncDisposable {
  /** What the agent said about itself. */
  readonly info: InitializeResponse;
  /** For what has no method of its own here. */
  readonly agent: ClientContext;
  newSession(options?: NewSessionOptions): Promise<AgentSession>;
  /** Resolves when the connection is closed, by either side. */
  readonly closed: Promise<void>;
  close(): void;
}

/** How long an agent may take to answer what begins a connection or a session. */
const START_MS = 60_000;

/**
 * Speaks the Agent Client Protocol with a program over its stdio, and serves its files, terminals and permissions from a
 * tool host. Returns when the agent has introduced itself.
 */
export async function connectAgent(options: ConnectAgentOptions): Promise<AgentConnection> {
  const { handle, toolHost, clock = systemClock, clientInfo } = options;
  const acp = await import("@agentclientprotocol/sdk");
  const { methods, PROTOCOL_VERSION } = acp;
  const turns = createTurns();
  const permissions = createAgentPermissions(toolHost, options.onPermission);
  const app = acp.client({ name: clientInfo?.name ?? "turnbox" });
  // The first handler: it runs as a message is read, and so before the answer that ends the turn.
  app.onNotification(methods.client.session.update, ({ params }) => {
    turns.receive(params);
    try {
      options.onUpdate?.(params);
    } catch {
      // The listener's own affair: the turn goes on.
    }
  });
  serveTools(app, { acp, toolHost, permissions, turnSignal: turns.signalOf });
  const connection = app.connect(acp.ndJsonStream(handle.stdin, handle.stdout));
  const { agent } = connection;
  const toFailure = (thrown: unknown, signal: AbortSignal | undefined): Promise<SandboxError> =>
    agentFailure(thrown, { acp, handle, clock, signal });

  const start = async <T>(ask: () => Promise<T>, call: CallOptions): Promise<T> => {
    const ms = call.timeoutMs ?? START_MS;
    using deadline = createDeadline({ clock, ms, ...(call.signal === undefined ? {} : { signal: call.signal }) });
    try {
      return await orAborted(ask(), deadline.signal);
    } catch (thrown) {
      throw await toFailure(thrown instanceof SandboxError ? (thrown.cause ?? thrown) : thrown, deadline.signal);
    }
  };

  const introduce = async (): Promise<InitializeResponse> => {
    const request: InitializeRequest = {
      protocolVersion: PROTOCOL_VERSION,
      clientCapabilities: { fs: { readTextFile: true, writeTextFile: true }, terminal: true },
      ...given({ clientInfo }),
    };
    const info = await start(() => agent.request(methods.agent.initialize, request), options);
    if (info.protocolVersion === PROTOCOL_VERSION) return info;
    throw new SandboxError("CAPABILITY_NOT_SUPPORTED", `the agent speaks version ${info.protocolVersion}`);
  };

  const info = await introduce().catch((thrown: unknown) => {
    connection.close();
    throw thrown;
  });

  return {
    info,
    agent,
    closed: connection.closed,
    newSession: async ({ cwd = toolHost.root, mcpServers = [], ...call } = {}) => {
      const { additionalDirs } = toolHost;
      const additional = additionalDirs.length === 0 ? {} : { additionalDirectories: [...additionalDirs] };
      const request: NewSessionRequest = { cwd, mcpServers: [...mcpServers], ...additional };
      const { sessionId } = await start(() => agent.request(methods.agent.session.new, request), call);
      const beginTurn = (id: string) => turns.begin(id, () => permissions.endTurn(id));
      return createAgentSession(sessionId, { methods: methods.agent, agent, clock, beginTurn, toFailure });
    },
    close: () => connection.close(),
    [Symbol.asyncDispose]: async () => connection.close(),
  };
}

/** How much of an agent's last words goes into a message. */
const LAST_WORDS_CHARS = 2000;
/** How long the end of an agent whose output has ended is waited for. */
const END_MS = 1000;

/** Why a request to an agent failed: it refused, the caller gave up, or it is gone. */
async function agentFailure(
  thrown: unknown,
  deps: { readonly acp: Acp; readonly handle: Handle; readonly clock: Clock; readonly signal: AbortSignal | undefined },
): Promise<SandboxError> {
  const { acp, handle, clock, signal } = deps;
  if (thrown instanceof SandboxError) return thrown;
  if (signal?.aborted === true) return SandboxError.from(signal.reason);
  const refusal = fromRequestError(acp, thrown);
  if (refusal !== undefined) return refusal;
  using deadline = createDeadline({ clock, ms: END_MS });
  const how = await handle.wait({ signal: deadline.signal }).then(
    ({ exitCode, signal: name, reason }) => `ended (${name ?? reason ?? `exit code ${exitCode ?? "unknown"}`})`,
    () => "closed its output",
  );
  const words = (await handle.stderr().catch(() => "")).trim().slice(-LAST_WORDS_CHARS);
  const message = `the agent ${how} before its answer${words === "" ? "" : `: ${words}`}`;
  return new SandboxError("OUTCOME_UNKNOWN", message, { cause: thrown });
}

/** The turns that run, one for a session at most. */
interface Turns {
  begin(sessionId: string, onEnd: () => void): Turn;
  receive(notification: SessionNotification): void;
  /** Ends when the session's turn is cancelled or over; undefined if none runs. */
  signalOf(sessionId: string): AbortSignal | undefined;
}

function createTurns(): Turns {
  const running = new Map<string, { readonly over: AbortController; text: string }>();
  return {
    begin: (sessionId, onEnd) => {
      const turn = { over: new AbortController(), text: "" };
      running.set(sessionId, turn);
      return {
        text: () => turn.text,
        cancel: () => turn.over.abort(),
        end: () => {
          running.delete(sessionId);
          turn.over.abort();
          onEnd();
        },
      };
    },
    receive: ({ sessionId, update }) => {
      const turn = running.get(sessionId);
      if (turn === undefined || update.sessionUpdate !== "agent_message_chunk") return;
      if (update.content.type === "text") turn.text += update.content.text;
    },
    signalOf: (sessionId) => running.get(sessionId)?.over.signal,
  };
}
