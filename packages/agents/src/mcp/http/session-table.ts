import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { StreamableHTTPServerTransport } from "@modelcontextprotocol/sdk/server/streamableHttp.js";
import type { Clock } from "@turnbox/client";
import type { McpSession } from "../mcp-session.ts";

/** A file that a model writes travels as one message. */
const MAX_BODY_BYTES = 64 * 1024 * 1024;

export interface SessionTableOptions {
  readonly createSession: (sessionId: string) => McpSession;
  readonly maxSessions: number;
  /** How long a session stays without a request and without an open stream. */
  readonly idleMs: number;
  readonly clock: Clock;
  readonly onProblem: (message: string) => void;
}

/** The sessions over HTTP, by their `Mcp-Session-Id`. Disposing ends them all. */
export interface SessionTable extends AsyncDisposable {
  /** Of a request that belongs to no session yet; undefined where there is no room for another. */
  begin(): Promise<Entry | undefined>;
  get(sessionId: string): Entry | undefined;
  readonly size: number;
}

export interface Entry {
  /** Answers a request, and keeps the session for as long as the answer is under way. */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
}

interface Session extends Entry {
  readonly idleSinceMs: () => number | undefined;
  readonly end: () => Promise<void>;
}

export function createSessionTable(options: SessionTableOptions): SessionTable {
  const { createSession, maxSessions, idleMs, clock, onProblem } = options;
  const sessions = new Map<string, Session>();
  const endings = new Set<Promise<void>>();
  const over = new AbortController();

  const begin = async (): Promise<Session> => {
    const sessionId = randomUUID();
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => sessionId,
      maxRequestBodySize: MAX_BODY_BYTES,
    });
    const session = createSession(sessionId);
    let openRequests = 0;
    let lastUsedMs = clock.monotonicMs();
    let ending: Promise<void> | undefined;
    const end = (): Promise<void> => {
      ending ??= finish();
      return ending;
    };
    const finish = async (): Promise<void> => {
      sessions.delete(sessionId);
      await session[Symbol.asyncDispose]();
    };
    const entry: Session = {
      idleSinceMs: () => (openRequests > 0 ? undefined : lastUsedMs),
      end,
      handle: async (request, response) => {
        openRequests += 1;
        const closed = new Promise<void>((resolve) => response.once("close", resolve));
        try {
          await transport.handleRequest(request, response);
          await closed;
        } finally {
          openRequests -= 1;
          lastUsedMs = clock.monotonicMs();
          // What did not begin with an initialization has been refused by the transport.
          if (transport.sessionId === undefined) endAside(entry);
        }
      },
    };
    // It counts from now on, so that many at once cannot get past the bound.
    sessions.set(sessionId, entry);
    session.mcp.server.onclose = () => {
      endAside(entry);
    };
    await session.mcp.connect(transport);
    return entry;
  };

  const endAside = (session: Session): void => {
    const ending = session
      .end()
      .catch((thrown: unknown) => {
        onProblem(`a session did not end well: ${String(thrown)}`);
      })
      .finally(() => endings.delete(ending));
    endings.add(ending);
  };

  const sweep = async (): Promise<void> => {
    for (;;) {
      await clock.sleep(idleMs / 4, { signal: over.signal });
      const nowMs = clock.monotonicMs();
      for (const session of sessions.values()) {
        if (nowMs - (session.idleSinceMs() ?? nowMs) >= idleMs) endAside(session);
      }
    }
  };
  void sweep().catch(() => undefined);

  return {
    begin: async () => (sessions.size < maxSessions && !over.signal.aborted ? await begin() : undefined),
    get: (sessionId) => sessions.get(sessionId),
    get size() {
      return sessions.size;
    },
    [Symbol.asyncDispose]: async () => {
      over.abort();
      for (const session of sessions.values()) endAside(session);
      await Promise.all(endings);
    },
  };
}
