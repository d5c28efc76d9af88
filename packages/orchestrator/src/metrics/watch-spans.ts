import type { Clock } from "@turnbox/core";
import type { FleetChange, FleetInstance, FleetView } from "../fleet/fleet-view.ts";
import type { FleetMetrics } from "./fleet-metrics.ts";

/** What is under way with an instance, and since when. */
interface Span {
  /** It comes up for the first time. */
  readonly comesUp?: "first";
  readonly drain?: { readonly reason: string; readonly sinceMs: number };
}

/**
 * Times how long instances take to come up and to be emptied, by following the fleet until the signal aborts. What was
 * under way when it began is not timed: its beginning was not seen.
 */
export async function watchSpans(
  { fleet, metrics, clock }: { readonly fleet: FleetView; readonly metrics: FleetMetrics; readonly clock: Clock },
  { signal }: { readonly signal: AbortSignal },
): Promise<void> {
  const spans = new Map<string, Span>();
  const known = new Set(fleet.instances().map(({ instanceId }) => instanceId));
  const follow = (change: Exclude<FleetChange, { readonly kind: "overflow" }>): void => {
    const { instance } = change;
    const { instanceId } = instance;
    const isNew = !known.has(instanceId);
    known.add(instanceId);
    const before = spans.get(instanceId) ?? {};
    const now = spanOf(instance, before, { nowMs: clock.monotonicMs(), isNew });
    if (change.kind === "changed") spans.set(instanceId, now);
    else {
      spans.delete(instanceId);
      known.delete(instanceId);
    }
    const elapsed = (sinceMs: number): number => (clock.monotonicMs() - sinceMs) / 1000;
    if (before.comesUp === "first" && ["ready", "active"].includes(instance.state))
      metrics.observe("provisionSeconds", {}, Math.max(0, clock.nowMs() - instance.launchedAtMs) / 1000);
    if (before.drain !== undefined && (change.kind === "removed" || isEmptied(instance)))
      metrics.observe("drainSeconds", { reason: before.drain.reason }, elapsed(before.drain.sinceMs));
  };
  try {
    for await (const change of fleet.changes({ signal })) {
      // Of what was missed nothing is known any more.
      if (change.kind === "overflow") spans.clear();
      else follow(change);
    }
  } catch (thrown) {
    if (!signal.aborted) throw thrown;
  }
}

const isEmptied = ({ state }: FleetInstance): boolean => state === "stopped" || state === "terminating";

function spanOf({ state, drainReason }: FleetInstance, before: Span, at: { nowMs: number; isNew: boolean }): Span {
  const comesUp = state === "provisioning" && (at.isNew || before.comesUp === "first");
  const isDrained = state === "draining" && drainReason !== undefined;
  return {
    ...(comesUp ? { comesUp: "first" } : {}),
    ...(isDrained ? { drain: before.drain ?? { reason: drainReason, sinceMs: at.nowMs } } : {}),
  };
}
