import type { SessionNotification } from "@agentclientprotocol/sdk";
import type { Turn } from "./agent-session.ts";

/** The turns that run, one for a session at most. */
export interface Turns {
  begin(sessionId: string, onEnd: () => void): Turn;
  hear(notification: SessionNotification): void;
  /** Ends when the session's turn is cancelled or over; undefined where none runs. */
  signalOf(sessionId: string): AbortSignal | undefined;
}

export function createTurns(): Turns {
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
    hear: ({ sessionId, update }) => {
      const turn = running.get(sessionId);
      if (turn === undefined || update.sessionUpdate !== "agent_message_chunk") return;
      if (update.content.type === "text") turn.text += update.content.text;
    },
    signalOf: (sessionId) => running.get(sessionId)?.over.signal,
  };
}
