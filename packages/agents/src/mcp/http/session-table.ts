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
  /** Of a request that belongs to no session yet; undefined if there is no room for another. */
  begin(): Promise<Entry | undefined>;
  get(sessionId: string): Entry | undefined;
  readonly size: number;
}

export interface Entry {
  /** Answers a request, and keeps the session for as long as the answer is under way. */
  handle(request: IncomingMessage, response: ServerResponse): Promise<void>;
}

export const createSessionTable = (options: SessionTableOptions): SessionTable => new HttpSessions(options);

class HttpSessions implements SessionTable {
  readonly #options: SessionTableOptions;
  readonly #sessions = new Map<string, HttpSession>();
  readonly #endings = new Set<Promise<void>>();
  readonly #over = new AbortController();

  constructor(options: SessionTableOptions) {
    this.#options = options;
    this.#sweep().catch(() => undefined);
  }

  get size(): number {
    return this.#sessions.size;
  }

  get(sessionId: string): Entry | undefined {
    return this.#sessions.get(sessionId);
  }

  async begin(): Promise<Entry | undefined> {
    const { createSession, maxSessions, clock } = this.#options;
    if (this.#sessions.size >= maxSessions || this.#over.signal.aborted) return undefined;
    const sessionId = randomUUID();
    const entry = new HttpSession(sessionId, {
      session: createSession(sessionId),
      clock,
      onEnd: () => this.#endAside(entry),
      onEnded: () => this.#sessions.delete(sessionId),
    });
    // It counts from now on, so that many at once cannot get past the bound.
    this.#sessions.set(sessionId, entry);
    await entry.connect();
    return entry;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#over.abort();
    for (const session of this.#sessions.values()) this.#endAside(session);
    await Promise.all(this.#endings);
  }

  #endAside(session: HttpSession): void {
    const ending = session
      .end()
      .catch((thrown: unknown) => {
        this.#options.onProblem(`a session did not end well: ${String(thrown)}`);
      })
      .finally(() => this.#endings.delete(ending));
    this.#endings.add(ending);
  }

  async #sweep(): Promise<void> {
    const { clock, idleMs } = this.#options;
    for (;;) {
      await clock.sleep(idleMs / 4, { signal: this.#over.signal });
      const nowMs = clock.monotonicMs();
      for (const session of this.#sessions.values()) {
        if (nowMs - (session.idleSinceMs() ?? nowMs) >= idleMs) this.#endAside(session);
      }
    }
  }
}

interface HttpSessionParts {
  readonly session: McpSession;
  readonly clock: Clock;
  /** Called if it is to end: its connection closed, or its first request was refused. */
  readonly onEnd: () => void;
  /** Called once, before what it holds is disposed of. */
  readonly onEnded: () => void;
}

class HttpSession implements Entry {
  readonly #parts: HttpSessionParts;
  readonly #transport: StreamableHTTPServerTransport;
  #openRequests = 0;
  #lastUsedMs: number;
  #ending: Promise<void> | undefined;

  constructor(sessionId: string, parts: HttpSessionParts) {
    this.#parts = parts;
    this.#lastUsedMs = parts.clock.monotonicMs();
    this.#transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: () => sessionId,
      maxRequestBodySize: MAX_BODY_BYTES,
    });
    parts.session.mcp.server.onclose = parts.onEnd;
  }

  async connect(): Promise<void> {
    await this.#parts.session.mcp.connect(this.#transport);
  }

  /** Undefined while a request is under way. */
  idleSinceMs(): number | undefined {
    return this.#openRequests > 0 ? undefined : this.#lastUsedMs;
  }

  async handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    this.#openRequests += 1;
    const closed = new Promise<void>((resolve) => response.once("close", resolve));
    try {
      await this.#transport.handleRequest(request, response);
      await closed;
    } finally {
      this.#openRequests -= 1;
      this.#lastUsedMs = this.#parts.clock.monotonicMs();
      // What did not begin with an initialization has been refused by the transport.
      if (this.#transport.sessionId === undefined) this.#parts.onEnd();
    }
  }

  end(): Promise<void> {
    this.#ending ??= this.#finish();
    return this.#ending;
  }

  async #finish(): Promise<void> {
    this.#parts.onEnded();
    await this.#parts.session[Symbol.asyncDispose]();
  }
}
