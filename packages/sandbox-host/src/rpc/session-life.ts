import type { ServiceImpl } from "@connectrpc/connect";
import { parseEnum } from "@turnbox/core";
import { principalOf } from "@turnbox/rpc/server";
import {
  DestroySessionRequestSchema,
  ExtendSessionRequestSchema,
  RepairSessionRequestSchema,
  type SessionService,
  ToolsPolicy,
} from "@turnbox/protocol/turnbox/host/v1/session_pb";
import type { DestroyOnRequest } from "../lifecycle/destroy.ts";
import type { ExtendSession } from "../lifecycle/extend.ts";
import type { PauseSession, ResumeSession } from "../lifecycle/pause.ts";
import type { RepairSession } from "../lifecycle/repair.ts";
import { boundTtl, type Ceilings, checkTtl, type SessionDefaults } from "../session/ceilings.ts";
import { signalOf, type Stops, type UsesSessions, useSession } from "./call.ts";
import { parseDrain, parseTtl } from "./duration.ts";
import { keyedRequest } from "./keyed-request.ts";
import { show, type ShowsSessions } from "./show.ts";

/** What the methods need that move a session from one state to another. */
export interface SessionLifeParts extends Stops, ShowsSessions, UsesSessions {
  readonly pauseSession: PauseSession;
  readonly resumeSession: ResumeSession;
  readonly extendSession: ExtendSession;
  readonly repairSession: RepairSession;
  readonly destroyOnRequest: DestroyOnRequest;
  readonly ceilings: Ceilings;
  readonly defaults: Pick<SessionDefaults, "pauseDrainTimeoutMs">;
}

type Handlers = ServiceImpl<typeof SessionService>;

const TOOLS: ReadonlyMap<number, "wait" | "refuse" | "kill"> = new Map([
  [ToolsPolicy.UNSPECIFIED, "wait"],
  [ToolsPolicy.WAIT, "wait"],
  [ToolsPolicy.REFUSE, "refuse"],
  [ToolsPolicy.KILL, "kill"],
]);

export function pauseSession(host: SessionLifeParts): Handlers["pauseSession"] {
  return async (request, context) => {
    const session = useSession(host, request.sessionId, context);
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
  };
}

export function resumeSession(host: SessionLifeParts): Handlers["resumeSession"] {
  return async (request, context) => {
    const session = useSession(host, request.sessionId, context);
    const { expectedGeneration, idempotencyKey } = request;
    await host.resumeSession(session, { expectedGeneration }, { signal: signalOf(host, idempotencyKey, context) });
    return { session: await show(host, session) };
  };
}

export function extendSession(host: SessionLifeParts): Handlers["extendSession"] {
  return async (request, context) => {
    const session = useSession(host, request.sessionId, context);
    const ttlMs = parseTtl("ttl", request.ttl);
    checkTtl(ttlMs, host.ceilings);
    await host.extendSession(session, {
      ...keyedRequest(ExtendSessionRequestSchema, request),
      expectedGeneration: request.expectedGeneration,
      ttlMs: boundTtl(ttlMs, host.ceilings),
    });
    return { session: await show(host, session) };
  };
}

export function repairSession(host: SessionLifeParts): Handlers["repairSession"] {
  return async (request, context) => {
    const session = useSession(host, request.sessionId, context);
    const { actions } = await host.repairSession(session, keyedRequest(RepairSessionRequestSchema, request), {
      signal: signalOf(host, request.idempotencyKey, context),
    });
    return { session: await show(host, session), actions: [...actions] };
  };
}

export function destroySession(host: SessionLifeParts): Handlers["destroySession"] {
  return async (request, context) => {
    await host.destroyOnRequest({
      caller: principalOf(context),
      ...keyedRequest(DestroySessionRequestSchema, request),
      sessionId: request.sessionId,
      expectedGeneration: request.expectedGeneration,
    });
    return {};
  };
}
