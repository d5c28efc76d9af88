import type { ServiceImpl } from "@connectrpc/connect";
import { invalidArgument, parseEnum, parseLabels, parseResources, parseSize, parseVariables } from "@turnbox/core";
import { principalOf } from "@turnbox/rpc/server";
import {
  CreateSessionRequestSchema,
  OnTimeout,
  type SessionService,
} from "@turnbox/protocol/turnbox/host/v1/session_pb";
import type { CreateSession } from "../lifecycle/create.ts";
import { boundTtl, type Ceilings, checkCeilings, type SessionDefaults } from "../session/ceilings.ts";
import { signalOf, type Stops } from "./call.ts";
import { type CapabilitySource, toWireCapabilities } from "./convert.ts";
import { parseTtl } from "./duration.ts";
import { keyedRequest } from "./keyed-request.ts";
import { type EnforcesPolicies, readPolicy } from "./network.ts";
import { show, type ShowsSessions } from "./show.ts";

export interface CreateSessionParts extends Stops, ShowsSessions, EnforcesPolicies, CapabilitySource {
  readonly createSession: CreateSession;
  readonly ceilings: Ceilings;
  readonly defaults: Pick<SessionDefaults, "limits" | "quotaBytes">;
}

const ON_TIMEOUT: ReadonlyMap<number, "pause" | "destroy"> = new Map([
  [OnTimeout.UNSPECIFIED, "destroy"],
  [OnTimeout.PAUSE, "pause"],
  [OnTimeout.DESTROY, "destroy"],
]);

/** CreateSession: what the request does not name comes from the host's defaults, within its ceilings. */
export function createSession(host: CreateSessionParts): ServiceImpl<typeof SessionService>["createSession"] {
  return async (request, context) => {
    const asked = {
      quotaBytes: parseSize("quota_bytes", request.quotaBytes) ?? null,
      limits: parseResources(request.resources),
      ttlMs: parseTtl("ttl", request.ttl),
    };
    checkCeilings(asked, host.ceilings);
    const session = await host.createSession(
      {
        tenant: principalOf(context).tenant,
        ...keyedRequest(CreateSessionRequestSchema, request),
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
  };
}

/** Ports that a session says it will serve. */
function parsePorts(ports: readonly number[]): readonly number[] {
  const valid = ports.every((port) => port >= 1 && port <= 65_535) && ports.length <= 64;
  if (!valid) throw invalidArgument("ports", "must be at most 64 numbers from 1 to 65535");
  return [...new Set(ports)];
}
