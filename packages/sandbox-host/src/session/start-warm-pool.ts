import { createHasRoom } from "../health/has-room.ts";
import type { Health } from "../health/health.ts";
import { MINI } from "../template/mini.ts";
import type { Templates } from "../template/templates.ts";
import { firstCall } from "./first-call.ts";
import type { Registry } from "./registry.ts";
import { createWarmPool, type WarmPool, type WarmPoolParts } from "./warm-pool.ts";

interface Parts extends Omit<WarmPoolParts, "firstCall" | "hasRoom" | "registry"> {
  readonly registry: Registry;
  readonly health: Health;
  readonly templates: Templates;
  readonly config: {
    readonly warmSessions: number;
    readonly warmRefillDelay: number;
    readonly warmRefillRate: number;
    readonly toolTimeout: number;
  };
  /** Settles when what an earlier service left has been looked at: until then it may be in the way. */
  readonly recovered: Promise<void>;
}

/** The pool of a host, which begins with the template that a create without a name of one means. */
export function startWarmPool(parts: Parts, call: { readonly signal: AbortSignal }): WarmPool {
  const { config, templates, recovered, log } = parts;
  const pool = createWarmPool(
    { ...parts, firstCall: firstCall({}, config.toolTimeout), hasRoom: createHasRoom(parts) },
    { size: config.warmSessions, refillDelayMs: config.warmRefillDelay, refillPerSecond: config.warmRefillRate },
  );
  if (config.warmSessions === 0) return pool;
  recovered
    .then(() => templates.resolve(MINI, call))
    .then(pool.expect)
    .catch((err: unknown) => {
      if (!call.signal.aborted) log.warn({ err }, "no session is made ready before the first create");
    });
  return pool;
}
