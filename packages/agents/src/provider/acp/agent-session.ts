import type { ClientContext, ContentBlock, StopReason } from "@agentclientprotocol/sdk";
import { type CallOptions, type Clock, SandboxError } from "@turnbox/client";
import { createDeadline } from "@turnbox/client/internal";
import { orAborted } from "../launch/stop-gently.ts";
import type { Acp } from "./acp.ts";

/** One conversation with an agent. */
export interface AgentSession {
  readonly id: string;
  /**
   * Sends a prompt and waits for the end of the turn. An abort cancels the turn as the protocol wants it, and the agent
   * has `CANCEL_GRACE_MS` to answer; CANCELLED where it does not.
   */
  prompt(content: string | readonly ContentBlock[], options?: CallOptions): Promise<PromptResult>;
  /** Cancels the turn that runs; `prompt` then ends with `cancelled`. */
  cancel(): Promise<void>;
}

/** How a prompt turn of an agent ended. */
export interface PromptResult {
  readonly stopReason: StopReason;
  /** What the agent said in this turn: the text of its message chunks. */
  readonly text: string;
}

export const CANCEL_GRACE_MS = 5000;

/** What a session needs of the connection that it belongs to. */
export interface SessionDeps {
  readonly methods: Acp["methods"]["agent"];
  readonly agent: ClientContext;
  readonly clock: Clock;
  /** Begins a turn: what the agent says, and a signal for what waits on its behalf. */
  readonly beginTurn: (sessionId: string) => Turn;
  readonly toFailure: (thrown: unknown, signal: AbortSignal | undefined) => Promise<SandboxError>;
}

export interface Turn {
  text(): string;
  /** Nobody need be asked on behalf of this turn any more. */
  cancel(): void;
  end(): void;
}

export function createAgentSession(id: string, deps: SessionDeps): AgentSession {
  const { methods, agent, clock, beginTurn, toFailure } = deps;
  let turn: Turn | undefined;

  const cancel = async (): Promise<void> => {
    turn?.cancel();
    await agent.notify(methods.session.cancel, { sessionId: id });
  };

  /** The answer, also to a cancellation, which the agent has a while for. */
  const untilAnswered = async <T>(answer: Promise<T>, signal: AbortSignal | undefined): Promise<T> => {
    try {
      return await orAborted(answer, signal);
    } catch (thrown) {
      if (signal?.aborted !== true) throw thrown;
      await cancel();
      using grace = createDeadline({ clock, ms: CANCEL_GRACE_MS });
      return await orAborted(answer, grace.signal).catch(() => {
        throw SandboxError.from(signal.reason);
      });
    }
  };

  return {
    id,
    cancel,
    prompt: async (content, { signal } = {}) => {
      if (signal?.aborted === true) throw SandboxError.from(signal.reason);
      if (turn !== undefined) throw new SandboxError("INVALID_STATE", "a turn of this session runs already");
      const prompt: ContentBlock[] = typeof content === "string" ? [{ type: "text", text: content }] : [...content];
      const running = beginTurn(id);
      turn = running;
      try {
        const answer = agent.request(methods.session.prompt, { sessionId: id, prompt });
        const { stopReason } = await untilAnswered(answer, signal);
        return { stopReason, text: running.text() };
      } catch (thrown) {
        throw await toFailure(thrown, signal);
      } finally {
        turn = undefined;
        running.end();
      }
    },
  };
}
