import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  invalidArgument,
  parseEnum,
  parseKey,
  parseLabels,
  parseResources,
  parseSize,
  parseVariables,
} from "@turnbox/core";
import { principalOf } from "@turnbox/rpc/server";
import {
  CreateSessionRequestSchema,
  DestroySessionRequestSchema,
  ExtendSessionRequestSchema,
  OnTimeout,
  RepairSessionRequestSchema,
  type SessionService,
  ToolsPolicy,
} from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { boundTtl, checkCeilings, checkTtl } from "../session/ceilings.ts";
import { assertGeneration } from "../session/generation.ts";
import type { Session } from "../session/session.ts";
import { canonicalRequest } from "./canonical.ts";
import { SESSION_STATES, toWireCapabilities, toWireSession } from "./convert.ts";
import { parseDrain } from "./drain.ts";
import { forkSession } from "./fork-session.ts";
import type { Host } from "./host.ts";
import { createPortAccess, getNetworkPolicy, readPolicy, updateNetworkPolicy } from "./network.ts";
import { pageOf } from "./paging.ts";
import { getSessionStats } from "./session-stats.ts";
import { show, USAGE_TIMEOUT_MS } from "./show.ts";
import { signalOf } from "./signal.ts";
import { parseTtl } from "./ttl.ts";
import { watchSessions } from "./watch-sessions.ts";

const TOOLS: ReadonlyMap<number, "wait" | "refuse" | "kill"> = new Map([
  [ToolsPolicy.UNSPECIFIED, "wait"],
  [ToolsPolicy.WAIT, "wait"],
  [ToolsPolicy.REFUSE, "refuse"],
  [ToolsPolicy.KILL, "kill"],
]);

const ON_TIMEOUT: ReadonlyMap<number, "pause" | "destroy"> = new Map([
  [OnTimeout.UNSPECIFIED, "destroy"],
  [OnTimeout.PAUSE, "pause"],
  [OnTimeout.DESTROY, "destroy"],
]);

/** SessionService: parse, call the use case, convert. */
export function createSessionService(host: Host): Partial<ServiceImpl<typeof SessionService>> {
  const find = (id: string, context: HandlerContext): Session => host.registry.get(id, principalOf(context));
  /** For what changes the session; reading does not count as using it. */
  const use = (id: string, context: HandlerContext): Session => {
    const session = find(id, context);
    host.activity.touch(session);
    return session;
  };

  return {
    createSession: async (request, context) => {
      const asked = {
        quotaBytes: parseSize("quota_bytes", request.quotaBytes) ?? null,
        limits: parseResources(request.resources),
        ttlMs: parseTtl("ttl", request.ttl),
      };
      checkCeilings(asked, host.ceilings);
      const session = await host.createSession(
        {
          tenant: principalOf(context).tenant,
          idempotencyKey: parseKey("idempotency_key", request.idempotencyKey),
          payload: canonicalRequest(CreateSessionRequestSchema, { ...request, idempotencyKey: "" }),
          sessionId: request.sessionId,
          base: request.base === "" ? "mini" : request.base,
          quotaBytes: asked.quotaBytes ?? host.defaults.quotaBytes,
          labels: parseLabels("labels", request.labels),
          env: parseVariables("env", request.env),
          limits: { ...host.defaults.limits, ...asked.limits },
          time: {
            ttlMs: boundTtl(asked.ttlMs, host.ceilings),
            idleTimeoutMs: parseTtl("idle_timeout", request.idleTimeout),
            onTimeout: parseEnum("on_timeout", request.onTimeout, ON_TIMEOUT),
          },
          ports: parsePorts(request.ports),
          networkPolicy: readPolicy(host, request.networkPolicy),
        },
        { signal: signalOf(host, request.idempotencyKey, context) },
      );
      return { session: await show(host, session), capabilities: toWireCapabilities(host) };
    },

    getSession: async (request, context) => ({ session: await show(host, find(request.sessionId, context)) }),

    listSessions: async (request, context) => {
      const caller = principalOf(context);
      const states = new Set(request.states.map((state) => parseEnum("states", state, SESSION_STATES)));
      const labels = Object.entries(request.selector?.matchLabels ?? {});
      const sessions = host.registry
        .all()
        .filter(({ row }) => host.registry.isVisible(row, caller))
        .filter(({ row }) => states.size === 0 || states.has(row.phase.kind))
        .filter(({ row }) => labels.every(([key, value]) => row.labels[key] === value));
      const page = pageOf(sessions, request.page, {
        listName: "sessions",
        keyOf: ({ row }) => `${String(row.createdAtMs).padStart(16, "0")} ${row.id}`,
      });
      const used = await host.storage
        .usedBytesOfAll({ signal: AbortSignal.timeout(USAGE_TIMEOUT_MS) })
        .catch(() => new Map<string, number>());
      const counts = await host.records.call("countSnapshots", null);
      return {
        sessions: page.entries.map((session) => {
          const { token } = session.row;
          return toWireSession(session, { snapshotCount: counts[token] ?? 0, spaceUsedBytes: used.get(token) ?? 0 });
        }),
        page: { nextPageToken: page.nextPageToken },
      };
    },

    pauseSession: async (request, context) => {
      const session = use(request.sessionId, context);
      const policy = parseEnum("tools", request.tools, TOOLS);
      const wait = parseDrain("drain_timeout", request.drainTimeout) ?? host.defaults.pauseDrainTimeoutMs;
      const pause = {
        expectedGeneration: request.expectedGeneration,
        late: policy === "kill" ? "kill" : "refuse",
        drainTimeoutMs: policy === "refuse" ? 0 : wait,
        cause: "request",
      } as const;
      await host.pauseSession(session, pause, { signal: signalOf(host, request.idempotencyKey, context) });
      return { session: await show(host, session) };
    },

    resumeSession: async (request, context) => {
      const session = use(request.sessionId, context);
      const { expectedGeneration } = request;
      await host.resumeSession(
        session,
        { expectedGeneration },
        { signal: signalOf(host, request.idempotencyKey, context) },
      );
      return { session: await show(host, session) };
    },

    extendSession: async (request, context) => {
      const session = use(request.sessionId, context);
      const ttlMs = parseTtl("ttl", request.ttl);
      checkTtl(ttlMs, host.ceilings);
      await host.extendSession(session, {
        idempotencyKey: parseKey("idempotency_key", request.idempotencyKey),
        payload: canonicalRequest(ExtendSessionRequestSchema, { ...request, idempotencyKey: "" }),
        expectedGeneration: request.expectedGeneration,
        ttlMs: boundTtl(ttlMs, host.ceilings),
      });
      return { session: await show(host, session) };
    },

    repairSession: async (request, context) => {
      const session = use(request.sessionId, context);
      const { actions } = await host.repairSession(
        session,
        {
          idempotencyKey: parseKey("idempotency_key", request.idempotencyKey),
          payload: canonicalRequest(RepairSessionRequestSchema, { ...request, idempotencyKey: "" }),
        },
        { signal: signalOf(host, request.idempotencyKey, context) },
      );
      return { session: await show(host, session), actions: [...actions] };
    },

    forkSession: forkSession(host),
    getNetworkPolicy: getNetworkPolicy(host),
    updateNetworkPolicy: updateNetworkPolicy(host),
    createPortAccess: createPortAccess(host),
    watchSessions: watchSessions(host),
    getSessionStats: getSessionStats(host),

    destroySession: async (request, context) => {
      const caller = principalOf(context);
      const key = parseKey("idempotency_key", request.idempotencyKey);
      const payload = canonicalRequest(DestroySessionRequestSchema, { ...request, idempotencyKey: "" });
      await host.receipts.once({ scope: `${caller.tenant}/DestroySession`, key, payload }, async (receiptOf) => {
        const session = host.registry.get(request.sessionId, caller);
        assertGeneration(session, request.expectedGeneration);
        await host.destroySession(session, receiptOf(null));
        return null;
      });
      return {};
    },
  };
}

/** Ports that a session says it will serve. */
function parsePorts(ports: readonly number[]): readonly number[] {
  const valid = ports.every((port) => port >= 1 && port <= 65_535) && ports.length <= 64;
  if (!valid) throw invalidArgument("ports", "must be at most 64 numbers from 1 to 65535");
  return [...new Set(ports)];
}
