import type { ServiceImpl } from "@connectrpc/connect";
import { parseLabels, parseResources, parseVariables, SandboxError } from "@turnbox/core";
import { principalOf } from "@turnbox/rpc/server";
import { ForkSessionRequestSchema, type SessionService } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { findMade } from "../lifecycle/create.ts";
import { type Ceilings, checkCeilings } from "../session/ceilings.ts";
import type { Registry } from "../session/registry.ts";
import { forkRights } from "../turn/fork-rights.ts";
import type { ForkedChild, ForkSession } from "../turn/fork.ts";
import { signalOf, type Stops, type UsesSessions, useSession } from "./call.ts";
import { parseTtl } from "./duration.ts";
import { keyedRequest } from "./keyed-request.ts";
import { type EnforcesPolicies, readPolicy } from "./network.ts";
import { show, type ShowsSessions } from "./show.ts";

export interface ForkSessionParts extends Stops, ShowsSessions, UsesSessions, EnforcesPolicies {
  readonly registry: Pick<Registry, "find" | "get">;
  readonly forkSession: ForkSession;
  readonly ceilings: Ceilings;
}

/** ForkSession: one result for each child. */
export function forkSession(host: ForkSessionParts): ServiceImpl<typeof SessionService>["forkSession"] {
  return async (request, context) => {
    const caller = principalOf(context);
    const session = useSession(host, request.sessionId, context);
    const asked = { limits: parseResources(request.resources), ttlMs: parseTtl("ttl", request.ttl) };
    checkCeilings({ ...asked, quotaBytes: null }, host.ceilings);
    const forked = await host.forkSession(
      session,
      {
        ...keyedRequest(ForkSessionRequestSchema, request),
        expectedGeneration: request.expectedGeneration,
        snapshotId: request.snapshotId === "" ? null : request.snapshotId,
        count: request.count === 0 ? 1 : request.count,
        childIds: request.childSessionIds,
        labels: orNull(parseLabels("labels", request.labels)),
        env: orNull(parseVariables("env", request.env)),
        ...asked,
        networkPolicy: readPolicy(host, request.networkPolicy),
        rights: forkRights(caller),
      },
      { signal: signalOf(host, request.idempotencyKey, context) },
    );
    const results = await Promise.all(forked.children.map((child) => toResult(host, child)));
    return { results, snapshotId: forked.snapshotId };
  };
}

/** An empty map copies the parent's. */
function orNull(map: Readonly<Record<string, string>>): Readonly<Record<string, string>> | null {
  return Object.keys(map).length === 0 ? null : map;
}

/** A child of an earlier call with the same key may be gone by now. */
async function toResult(host: ForkSessionParts, child: ForkedChild) {
  if ("reason" in child) return { result: { case: "reason", value: child.reason } as const, message: child.message };
  try {
    return { result: { case: "session", value: await show(host, findMade(host.registry, child)) } as const };
  } catch (thrown) {
    const { reason, message } = SandboxError.from(thrown);
    return { result: { case: "reason", value: reason } as const, message };
  }
}
