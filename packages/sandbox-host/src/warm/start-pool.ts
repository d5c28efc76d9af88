import type { Clock } from "@turnbox/core";
import { prewarmSpec } from "../container/prewarm-spec.ts";
import type { Health } from "../health/health.ts";
import { readHostStats } from "../health/stats.ts";
import type { Registry } from "../session/registry.ts";
import { MINI } from "../template/mini.ts";
import type { WarmMember } from "./member.ts";
import { WarmPool, type WarmPoolParts } from "./pool.ts";

interface Parts extends Omit<WarmPoolParts, "prewarmSpec" | "hasRoom" | "registry"> {
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
  /** Settles when the rest of what an earlier service left is recovered: until then it may conflict with new sessions. */
  readonly recovered: Promise<void>;
}

/** Starts the pool of a host. It begins with the default template. */
export function startWarmPool(parts: Parts, call: { readonly signal: AbortSignal }): WarmPool {
  const { config, templates, recovered, log } = parts;
  const networked = parts.network.support.kind === "enforced" ? config.warmNetworkSessions : 0;
  const pool = new WarmPool(
    { ...parts, prewarmSpec: prewarmSpec({}, config.toolTimeout), hasRoom: createHasRoom(parts) },
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
    .then((base) => {
      pool.expect(base);
    })
    .catch((err: unknown) => {
      if (!call.signal.aborted) log.warn({ err }, "no warm session before the first create");
    });
  return pool;
}

/** Of the machine's memory: with less than this left, nothing is held ready. */
const LEAST_MEMORY = 0.15;

/** Whether there is memory and space in the pool to spare. */
function createHasRoom(deps: {
  readonly health: Pick<Health, "isRoomy">;
  readonly registry: Registry;
  readonly clock: Clock;
}): () => Promise<boolean> {
  return async () => {
    const [isRoomy, stats] = await Promise.all([deps.health.isRoomy(), readHostStats(deps)]);
    return isRoomy && stats.memoryAvailableBytes >= stats.memoryBytes * LEAST_MEMORY;
  };
}
