import type { Log } from "@turnbox/core";
import type { Provisioner, Tags } from "../provisioner.ts";

export interface LocalHostsOptions {
  readonly provisioner: Provisioner;
  readonly tags: Tags;
  readonly count: number;
  /** Whether the fleet still wants an instance of this id. */
  readonly isWanted: (instanceId: string) => boolean;
  readonly log: Log;
}

interface Call {
  readonly signal: AbortSignal;
}

export const localHostIds = (count: number): readonly string[] =>
  Array.from({ length: count }, (_, index) => `local-${String(index + 1)}`);

/** Launches `local-1` and so on at once; the first that is ready is enough, the others follow. */
export async function launchLocalHosts(options: LocalHostsOptions, call: Call): Promise<void> {
  const { provisioner, tags, log } = options;
  const launches = localHostIds(options.count)
    .filter(options.isWanted)
    .map(async (instanceId) => {
      try {
        await provisioner.launch({ instanceId, tags }, call);
      } catch (error) {
        if (!call.signal.aborted) log.error({ err: error, instanceId }, "a host cannot be started");
        throw error;
      }
    });
  if (launches.length === 0) return;
  try {
    await Promise.any(launches);
  } catch (error) {
    throw error instanceof AggregateError ? (error.errors[0] as unknown) : error;
  }
}

/** Launches those again that are wanted and not there. */
export async function keepLocalHosts(options: LocalHostsOptions, call: Call): Promise<void> {
  const { provisioner, tags, count, isWanted } = options;
  const there = new Set((await provisioner.list({ tags, states: [] }, call)).map(({ instanceId }) => instanceId));
  const missing = (instanceId: string): boolean => isWanted(instanceId) && !there.has(instanceId);
  if (localHostIds(count).some(missing)) await launchLocalHosts({ ...options, isWanted: missing }, call);
}
