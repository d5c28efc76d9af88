import type { Clock } from "@turnbox/core";
import type { Registry } from "../session/registry.ts";
import type { Health } from "./health.ts";
import { readHostStats } from "./stats.ts";

/** Of the machine's memory: with less than this left, nothing is held ready. */
const LEAST_MEMORY = 0.15;

/** Whether there is memory and space in the pool to spare. */
export function createHasRoom(deps: {
  readonly health: Pick<Health, "isRoomy">;
  readonly registry: Registry;
  readonly clock: Clock;
}): () => Promise<boolean> {
  return async () => {
    const [isRoomy, stats] = await Promise.all([deps.health.isRoomy(), readHostStats(deps)]);
    return isRoomy && stats.memoryAvailableBytes >= stats.memoryBytes * LEAST_MEMORY;
  };
}
