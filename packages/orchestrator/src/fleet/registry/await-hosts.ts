import { type Clock, createDeadline } from "@turnbox/core";
import type { InstanceRegistry } from "./instance-registry.ts";

interface Call {
  readonly signal: AbortSignal;
}

/** Waits until none of these instances is on its way, and no longer than is worth it. */
export type AwaitHosts = (instanceIds: readonly string[], call: Call) => Promise<void>;

export interface AwaitHostsOptions {
  readonly registry: InstanceRegistry;
  readonly clock: Clock;
}

const PATIENCE_MS = 15_000;

/**
 * Hosts that had answered before come back with the orchestrator, or after it: calls that concern them wait for their
 * first answer instead of failing. A caller whose host does not come finds out by the call itself.
 */
export function createAwaitHosts({ registry, clock }: AwaitHostsOptions): AwaitHosts {
  return async (instanceIds, { signal }) => {
    const isAwaited = (): boolean => instanceIds.some((instanceId) => registry.isComing(instanceId));
    if (!isAwaited()) return;
    const arrived = Promise.withResolvers<void>();
    using _listening = registry.listen(() => {
      if (!isAwaited()) arrived.resolve();
    });
    using patience = createDeadline({ clock, ms: PATIENCE_MS, signal });
    const onAbort = (): void => {
      arrived.resolve();
    };
    if (patience.signal.aborted) onAbort();
    patience.signal.addEventListener("abort", onAbort, { once: true });
    await arrived.promise;
    patience.signal.removeEventListener("abort", onAbort);
    signal.throwIfAborted();
  };
}
