import type { FleetInstance } from "../fleet-view.ts";

interface Sample {
  readonly atMs: number;
  readonly sessions: number;
}

/** How far back the rate of creates is looked at. */
const WINDOW_MS = 180_000;

/** How many instances the growth of the last minutes fills while one boots. Pure. */
export function predictInstances(world: {
  readonly samples: readonly Sample[];
  readonly bootTimeMs: number;
  /** Sandboxes that one instance takes; 0 means that there is no bound. */
  readonly sessionsPerInstance: number;
}): number {
  const { samples, bootTimeMs, sessionsPerInstance } = world;
  const first = samples[0];
  const last = samples.at(-1);
  if (first === undefined || last === undefined || last.atMs <= first.atMs || sessionsPerInstance === 0) return 0;
  let grown = 0;
  samples.reduce((before, sample) => {
    grown += Math.max(0, sample.sessions - before.sessions);
    return sample;
  });
  // A burst that has only begun counts over the time that a boot takes at least.
  const spanMs = Math.max(last.atMs - first.atMs, bootTimeMs);
  return Math.ceil((grown * bootTimeMs) / spanMs / sessionsPerInstance);
}

/** Remembers how many sandboxes there were, look by look, and predicts from that. */
export function createForecast({ bootTimeMs }: { readonly bootTimeMs: number }) {
  let samples: readonly Sample[] = [];
  return {
    next: ({ nowMs, instances }: { readonly nowMs: number; readonly instances: readonly FleetInstance[] }): number => {
      const sessions = instances.reduce((sum, instance) => sum + instance.sessionCount, 0);
      const limits = instances.map((instance) => instance.maxSessions).filter((limit) => limit > 0);
      const sessionsPerInstance =
        limits.length === 0 ? 0 : limits.reduce((sum, limit) => sum + limit, 0) / limits.length;
      samples = [...samples.filter(({ atMs }) => nowMs - atMs < WINDOW_MS), { atMs: nowMs, sessions }];
      return predictInstances({ samples, bootTimeMs, sessionsPerInstance });
    },
  };
}
