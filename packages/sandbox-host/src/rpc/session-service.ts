import { durationFromMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import { parseEnum } from "@turnbox/core";
import { principalOf } from "@turnbox/rpc/server";
import type { SessionService } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import type { Registry } from "../session/registry.ts";
import type { Session } from "../session/session.ts";
import type { SessionUsage } from "../session/session-usage.ts";
import type { SessionStats } from "../session/stats.ts";
import { type FindsSessions, findSession } from "./call.ts";
import { SESSION_STATES, toWireSession } from "./convert.ts";
import { createSession, type CreateSessionParts } from "./create-session.ts";
import { forkSession, type ForkSessionParts } from "./fork-session.ts";
import { createPortAccess, getNetworkPolicy, type NetworkParts, updateNetworkPolicy } from "./network.ts";
import { pageOf } from "./paging.ts";
import {
  destroySession,
  extendSession,
  pauseSession,
  repairSession,
  resumeSession,
  type SessionLifeParts,
} from "./session-life.ts";
import { show } from "./show.ts";
import { watchSessions, type WatchSessionsParts } from "./watch-sessions.ts";

interface ReadParts extends FindsSessions {
  readonly registry: Pick<Registry, "get" | "list">;
  readonly usage: Pick<SessionUsage, "of" | "ofAll">;
  /** Reads what a session uses. */
  readonly sessionStats: (session: Session, call: { readonly signal: AbortSignal }) => Promise<SessionStats>;
}

/** What SessionService needs. */
export type SessionServiceParts = CreateSessionParts &
  ReadParts &
  SessionLifeParts &
  ForkSessionParts &
  NetworkParts &
  WatchSessionsParts;

type Handlers = ServiceImpl<typeof SessionService>;

/** SessionService: parse, call the use case, convert. */
export function createSessionService(host: SessionServiceParts): Partial<Handlers> {
  return {
    createSession: createSession(host),
    getSession: async (request, context) => ({
      session: await show(host, findSession(host, request.sessionId, context)),
    }),
    listSessions: listSessions(host),
    pauseSession: pauseSession(host),
    resumeSession: resumeSession(host),
    extendSession: extendSession(host),
    repairSession: repairSession(host),
    forkSession: forkSession(host),
    getNetworkPolicy: getNetworkPolicy(host),
    updateNetworkPolicy: updateNetworkPolicy(host),
    createPortAccess: createPortAccess(host),
    watchSessions: watchSessions(host),
    getSessionStats: getSessionStats(host),
    destroySession: destroySession(host),
  };
}

function listSessions({ registry, usage }: ReadParts): Handlers["listSessions"] {
  return async (request, context) => {
    const sessions = registry.list({
      caller: principalOf(context),
      states: new Set(request.states.map((state) => parseEnum("states", state, SESSION_STATES))),
      labels: request.selector?.matchLabels ?? {},
    });
    const page = pageOf(sessions, request.page, {
      listName: "sessions",
      keyOf: ({ row }) => `${String(row.createdAtMs).padStart(16, "0")} ${row.id}`,
    });
    const factsOf = await usage.ofAll();
    return {
      sessions: page.entries.map((session) => toWireSession(session, factsOf(session))),
      page: { nextPageToken: page.nextPageToken },
    };
  };
}

function getSessionStats(host: ReadParts): Handlers["getSessionStats"] {
  return async (request, context) => {
    const session = findSession(host, request.sessionId, context);
    const stats = await host.sessionStats(session, { signal: context.signal });
    return {
      at: timestampFromMs(Math.round(stats.atMs)),
      cpuTime: durationFromMs(Math.round(stats.cpuMs)),
      memoryBytes: BigInt(Math.round(stats.memoryBytes)),
      memoryLimitBytes: BigInt(stats.memoryLimitBytes ?? 0),
      pids: stats.processes,
      referencedBytes: BigInt(stats.referencedBytes),
      spaceUsedBytes: BigInt(stats.spaceUsedBytes),
      networkReceivedBytes: BigInt(stats.traffic.receivedBytes),
      networkSentBytes: BigInt(stats.traffic.sentBytes),
    };
  };
}
