import type { HandlerContext } from "@connectrpc/connect";
import { principalOf } from "@turnbox/rpc/server";
import type { Activity } from "../session/activity.ts";
import type { Registry } from "../session/registry.ts";
import type { Session } from "../session/session.ts";

/** What methods need that look at a session. */
export interface FindsSessions {
  readonly registry: Pick<Registry, "get">;
}

/** What methods need that change a session. */
export interface UsesSessions extends FindsSessions {
  readonly activity: Pick<Activity, "touch">;
}

/** The caller's session. Reading does not count as using it. */
export function findSession({ registry }: FindsSessions, id: string, context: HandlerContext): Session {
  return registry.get(id, principalOf(context));
}

/** The caller's session, for what changes it. */
export function useSession(parts: UsesSessions, id: string, context: HandlerContext): Session {
  const session = findSession(parts, id, context);
  parts.activity.touch(session);
  return session;
}

/** What methods need whose operations may outlive their calls. */
export interface Stops {
  /** Aborts when the host stops. */
  readonly stopping: AbortSignal;
}

/** Longer than any such operation takes; it bounds one that hangs. */
const OPERATION_TIMEOUT_MS = 300_000;

/**
 * What ends a mutating operation. With an idempotency key the caller can come back for the result, and others may have
 * joined the call, so it is brought to its end whether or not the caller is still there; without one its result could not
 * be asked for.
 */
export function signalOf({ stopping }: Stops, key: string, context: HandlerContext): AbortSignal {
  return key === "" ? context.signal : AbortSignal.any([stopping, AbortSignal.timeout(OPERATION_TIMEOUT_MS)]);
}
