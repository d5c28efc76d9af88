import { type Clock, hasReason } from "@turnbox/core";
import { type Network, NO_TRAFFIC, type Traffic } from "../network/network.ts";
import type { ContainerStats, Runtime } from "../runtime/runtime.ts";
import type { Storage } from "../storage/storage.ts";
import type { Session } from "./session.ts";

/** What a session uses. */
export interface SessionStats extends ContainerStats {
  readonly atMs: number;
  /** Null if there is no bound. */
  readonly memoryLimitBytes: number | null;
  readonly spaceUsedBytes: number;
  /** What its files refer to, those of the template included. */
  readonly referencedBytes: number;
  readonly traffic: Traffic;
}

const NOTHING: ContainerStats = { cpuMs: 0, memoryBytes: 0, processes: 0 };

/** Reads what a session uses. Without a container that runs, nothing runs: that is not a failure. */
export async function readSessionStats(
  deps: {
    readonly runtime: Runtime;
    readonly storage: Storage;
    readonly network: Pick<Network, "traffic">;
    readonly clock: Clock;
  },
  session: Session,
  call: { readonly signal: AbortSignal },
): Promise<SessionStats> {
  const { row } = session;
  const [used, spaceUsedBytes, referencedBytes, traffic] = await Promise.all([
    row.container === null ? NOTHING : readContainer(deps.runtime, row.container, call),
    orNothing(deps.storage.usedBytes(row.token, call)),
    orNothing(deps.storage.headBytes(session.head, call)),
    row.container === null ? NO_TRAFFIC : deps.network.traffic(row.container, call),
  ]);
  const memoryLimitBytes = row.limits.memoryBytes ?? null;
  return { atMs: deps.clock.nowMs(), ...used, memoryLimitBytes, spaceUsedBytes, referencedBytes, traffic };
}

/** A session of which nothing is left, or that is going, takes nothing. */
async function orNothing(bytes: Promise<number>): Promise<number> {
  try {
    return await bytes;
  } catch (thrown) {
    if (hasReason(thrown, "SESSION_NOT_FOUND")) return 0;
    throw thrown;
  }
}

async function readContainer(
  runtime: Runtime,
  id: string,
  call: { readonly signal: AbortSignal },
): Promise<ContainerStats> {
  try {
    return await runtime.stats(id, call);
  } catch (thrown) {
    if (hasReason(thrown, "SANDBOX_LOST")) return NOTHING;
    throw thrown;
  }
}
