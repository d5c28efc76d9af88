import type { CallOptions, Clock, Sandbox, Turn } from "@turnbox/client";
import type { LaunchSpec } from "../launch/launcher.ts";
import { createTurnboxLauncher, type LaunchingSandbox } from "../launch/turnbox-launcher.ts";
import type { ToolHostOptions } from "../tool-host/create-tool-host.ts";
import { createTurnboxToolHost, type ToolSandbox } from "../tool-host/turnbox-tool-host.ts";
import type { AgentSession, PromptResult } from "./agent-session.ts";
import { given } from "./given.ts";
import {
  type AgentConnection,
  connectAgent,
  type ConnectAgentOptions,
  type NewSessionOptions,
} from "./connect-agent.ts";

/** What an agent needs of a sandbox. */
export type AgentSandbox = LaunchingSandbox & ToolSandbox & Pick<Sandbox, "turn">;

/** An agent to run in a sandbox. */
export interface SandboxAgentOptions
  extends LaunchSpec,
    Partial<ToolHostOptions>,
    Pick<ConnectAgentOptions, "onUpdate" | "onPermission" | "clientInfo" | "signal" | "timeoutMs">,
    Pick<NewSessionOptions, "mcpServers"> {
  readonly clock?: Clock;
}

/** An agent that works in a sandbox. Disposing ends it, its terminals included; the sandbox stays. */
export interface SandboxAgent extends AsyncDisposable {
  readonly connection: AgentConnection;
  readonly session: AgentSession;
  /**
   * Sends a prompt, waits for the end of the agent's turn and seals the sandbox's. A turn that the agent did not end by
   * itself (cancelled, refused, out of tokens, died) is sealed as failed.
   */
  prompt(content: Parameters<AgentSession["prompt"]>[0], options?: CallOptions): Promise<SealedPrompt>;
  /** The last of what the agent wrote to standard error. */
  stderr(options?: CallOptions): Promise<string>;
}

/** A prompt turn, and the turn of the sandbox that was sealed after it. */
export interface SealedPrompt extends PromptResult {
  readonly turn: Turn;
}

/** Launches an ACP agent in a sandbox, and opens a session with it whose files and commands are the sandbox's. */
export async function runAgentInSandbox(sandbox: AgentSandbox, options: SandboxAgentOptions): Promise<SandboxAgent> {
  const { command, args, env, secretEnv, cwd, root = "/workspace", additionalDirs, permissions, mcpServers } = options;
  const { onUpdate, onPermission, clientInfo, signal, timeoutMs, clock } = options;
  const call = given({ signal, timeoutMs });
  const owned: AsyncDisposable[] = [];
  const own = <T extends AsyncDisposable>(one: T): T => {
    owned.unshift(one);
    return one;
  };
  const disposeAll = async (): Promise<void> => {
    for (const one of owned.splice(0)) await one[Symbol.asyncDispose]();
  };

  const open = async () => {
    const toolHost = own(createTurnboxToolHost(sandbox, { root, ...given({ additionalDirs, permissions }) }));
    const launcher = createTurnboxLauncher(sandbox, { root, ...given({ clock }) });
    const handle = own(await launcher.launch({ command, ...given({ args, env, secretEnv, cwd }) }, call));
    const listeners = given({ onUpdate, onPermission, clientInfo, clock });
    const connection = own(await connectAgent({ handle, toolHost, ...listeners, ...call }));
    const session = await connection.newSession({ ...given({ cwd, mcpServers }), ...call });
    return { handle, connection, session };
  };
  const { handle, connection, session } = await open().catch(async (thrown: unknown) => {
    await disposeAll().catch(() => undefined);
    throw thrown;
  });

  return {
    connection,
    session,
    stderr: handle.stderr,
    prompt: async (content, callOptions = {}) => {
      let result: PromptResult;
      try {
        result = await session.prompt(content, callOptions);
      } catch (thrown) {
        // The agent's failure is what the caller has to get, also if the sandbox is gone with it.
        await sandbox.turn({ outcome: "failed" }).catch(() => undefined);
        throw thrown;
      }
      const outcome = result.stopReason === "end_turn" ? "succeeded" : "failed";
      return { ...result, turn: await sandbox.turn({ outcome }) };
    },
    [Symbol.asyncDispose]: disposeAll,
  };
}
