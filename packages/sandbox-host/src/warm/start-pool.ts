import { createHasRoom } from "../health/has-room.ts";
import type { Health } from "../health/health.ts";
import { MINI } from "../template/mini.ts";
import { firstCall } from "../container/prewarm-spec.ts";
import type { Registry } from "../session/registry.ts";
import type { WarmMember } from "./member.ts";
import { createWarmPool, type WarmPool, type WarmPoolParts } from "./pool.ts";

interface Parts extends Omit<WarmPoolParts, "firstCall" | "hasRoom" | "registry"> {
  readonly registry: Registry;
  readonly health: Health;
  readonly config: {
    readonly warmSessions: number;
    readonly warmNetworkSessions: number;
    readonly warmRefillDelay: number;
    readonly warmRefillRate: number;
    readonly toolTimeout: number;
  };
  /** Those that an earlier service left ready. */
  readonly left: readonly WarmMember[];
  /** Settles when what else an earlier service left has been looked at: until then it may be in the way. */
  readonly recovered: Promise<void>;
}

/** The pool of a host, which begins with the template that a create without a name of one means. */
export function startWarmPool(parts: Parts, call: { readonly signal: AbortSignal }): WarmPool {
  const { config, templates, recovered, log } = parts;
  const networked = parts.network.support.kind === "enforced" ? config.warmNetworkSessions : 0;
  const pool = createWarmPool(
    { ...parts, firstCall: firstCall({}, config.toolTimeout), hasRoom: createHasRoom(parts) },
    {
      sizes: { plain: config.warmSessions, networked },
      refillDelayMs: config.warmRefillDelay,
      refillPerSecond: config.warmRefillRate,
      left: parts.left,
    },
  );
  if (config.warmSessions + networked === 0) return pool;
  recovered
    .then(() => templates.resolve(MINI, call))
    .then(pool.expect)
    .catch((err: unknown) => {
      if (!call.signal.aborted) log.warn({ err }, "no session is made ready before the first create");
    });
  return pool;
}
