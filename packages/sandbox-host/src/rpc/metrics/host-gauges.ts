import type { FileWorkers } from "../../file/workers.ts";
import type { HealthGrade } from "../../health/grade.ts";
import type { Health } from "../../health/health.ts";
import type { Records } from "../../record/records.ts";
import type { Phase } from "../../record/row.ts";
import type { Registry } from "../../session/registry.ts";
import type { WarmPool } from "../../warm/pool.ts";
import type { HostMetrics } from "./host-metrics.ts";

const STATES = ["creating", "active", "paused", "failed", "destroying"] as const satisfies readonly Phase["kind"][];
const GRADES = ["healthy", "degraded", "unhealthy"] as const satisfies readonly HealthGrade[];

/** What the gauges are read from. */
export interface GaugedParts {
  readonly registry: Pick<Registry, "all" | "reserved">;
  readonly health: Pick<Health, "report">;
  readonly maxSessions: number;
  readonly fileWorkers: Pick<FileWorkers, "stats">;
  readonly records: Pick<Records, "pending">;
  readonly warm: Pick<WarmPool, "stats">;
}

/** Lets each scrape read how the host is. Nothing is asked for between scrapes. */
export function registerHostGauges(metrics: HostMetrics, host: GaugedParts): void {
  const { registry, health, maxSessions, fileWorkers, records, warm } = host;
  const plain = (value: number) => [{ labels: {}, value }];
  metrics.collect("sessions", () => {
    const counts = new Map<string, number>(STATES.map((state) => [state, 0]));
    for (const { row } of registry.all()) counts.set(row.phase.kind, (counts.get(row.phase.kind) ?? 0) + 1);
    // A create has its id before it has a session.
    counts.set("creating", Math.max(counts.get("creating") ?? 0, registry.reserved));
    return [...counts].map(([state, value]) => ({ labels: { state }, value }));
  });
  metrics.collect("maxSessions", () => plain(maxSessions));
  metrics.collect("activeTools", () => plain(registry.all().reduce((sum, { gate }) => sum + gate.inFlight, 0)));
  metrics.collect("warmSessions", () => plain(warm.stats().ready));
  metrics.collect("warmCreates", () => {
    const { hits, misses } = warm.stats();
    return [
      { labels: { outcome: "hit" }, value: hits },
      { labels: { outcome: "miss" }, value: misses },
    ];
  });
  metrics.collect("poolBytes", async () => {
    const { storage } = await health.report();
    if (storage === null) return [];
    return [
      { labels: { kind: "size" }, value: storage.sizeBytes },
      { labels: { kind: "used" }, value: storage.usedBytes },
      { labels: { kind: "available" }, value: storage.availableBytes },
    ];
  });
  metrics.collect("health", async () => {
    const report = await health.report();
    return GRADES.map((grade) => ({ labels: { grade }, value: report.grade === grade ? 1 : 0 }));
  });
  metrics.collect("removals", async () => plain((await health.report()).removals.length));
  metrics.collect("husks", async () => plain((await health.report()).husks));
  metrics.collect("recordQueue", () => plain(records.pending));
  metrics.collect("workers", () =>
    Object.entries(fileWorkers.stats()).flatMap(([lane, { idle, busy, left }]) =>
      Object.entries({ idle, busy, left }).map(([state, value]) => ({ labels: { lane, state }, value })),
    ),
  );
  metrics.collect("workerQueue", () =>
    Object.entries(fileWorkers.stats()).map(([lane, { waiting }]) => ({ labels: { lane }, value: waiting })),
  );
}
