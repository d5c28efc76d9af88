import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from "prom-client";
import type { KeysOf, LabelsOf, MetricSpec, MetricTable } from "./metric-table.ts";

/** A value of a gauge at this moment. */
export interface Sample<Spec extends MetricSpec> {
  readonly labels: LabelsOf<Spec>;
  readonly value: number;
}

/** The metrics of one service. What is not in its table cannot be recorded. */
export interface Metrics<Table extends MetricTable> {
  add<Key extends KeysOf<Table, "counter">>(key: Key, labels: LabelsOf<Table[Key]>, amount?: number): void;
  observe<Key extends KeysOf<Table, "histogram">>(key: Key, labels: LabelsOf<Table[Key]>, seconds: number): void;
  /** Reads a gauge at each scrape. One that fails, or does not answer in time, is missing from that scrape. */
  collect<Key extends KeysOf<Table, "gauge">>(key: Key, read: ReadGauge<Table[Key]>): void;
  /** Everything in Prometheus' text format. */
  render(): Promise<MetricsPage>;
}

export type ReadGauge<Spec extends MetricSpec> = (call: {
  readonly signal: AbortSignal;
}) => Promise<readonly Sample<Spec>[]> | readonly Sample<Spec>[];

export interface MetricsPage {
  readonly contentType: string;
  readonly text: string;
}

export interface MetricsOptions {
  /** Whether processor time, memory, event loop and the like of this process are shown too. */
  readonly process: "shown" | "hidden";
}

/** How long a scrape waits for a gauge. */
const COLLECT_TIMEOUT_MS = 4000;

/** A registry of its own for the metrics of `table`, all of which exist from the start. */
export function createMetrics<const Table extends MetricTable>(
  table: Table,
  options: MetricsOptions = { process: "hidden" },
): Metrics<Table> {
  const registry = new Registry();
  if (options.process === "shown") collectDefaultMetrics({ register: registry });
  const counters = new Map<string, Counter>();
  const histograms = new Map<string, Histogram>();
  const readers = new Map<string, ReadGauge<MetricSpec>>();
  for (const [key, { kind, name, help, labels, bucketsSeconds }] of Object.entries(table)) {
    const common = { name, help, labelNames: labels, registers: [registry] };
    if (kind === "counter") {
      counters.set(key, new Counter(common));
    } else if (kind === "histogram") {
      histograms.set(
        key,
        new Histogram({ ...common, ...(bucketsSeconds === undefined ? {} : { buckets: [...bucketsSeconds] }) }),
      );
    } else {
      new Gauge({
        ...common,
        async collect() {
          this.reset();
          // A reset one without labels would say 0 until it is set.
          if (labels.length === 0) this.remove();
          const read = readers.get(key);
          if (read === undefined) return;
          for (const { labels: at, value } of await samplesOf(read)) this.set(at, value);
        },
      });
    }
  }
  const record = createLater();
  /** Scrapes at the same time are one. */
  let rendering: Promise<MetricsPage> | undefined;
  return {
    add: (key, labels, amount = 1) => {
      record.later(() => counters.get(key)?.inc(labels, amount));
    },
    observe: (key, labels, seconds) => {
      record.later(() => {
        histograms.get(key)?.observe(labels, seconds);
      });
    },
    collect: (key, read) => {
      readers.set(key, read);
    },
    render: async () => {
      record.now();
      rendering ??= registry
        .metrics()
        .then((text) => ({ contentType: registry.contentType, text }))
        .finally(() => {
          rendering = undefined;
        });
      return await rendering;
    },
  };
}

/**
 * Puts off what is recorded until the turn of the loop is over: the recorder is about to answer a call, which is written before
 * that.
 */
function createLater(): { later(work: () => unknown): void; now(): void } {
  let waiting: (() => unknown)[] = [];
  const now = (): void => {
    const due = waiting;
    waiting = [];
    for (const work of due) work();
  };
  return {
    later: (work) => {
      waiting.push(work);
      if (waiting.length === 1) setImmediate(now).unref();
    },
    now,
  };
}

async function samplesOf(read: ReadGauge<MetricSpec>): Promise<readonly Sample<MetricSpec>[]> {
  const signal = AbortSignal.timeout(COLLECT_TIMEOUT_MS);
  const late = new Promise<never>((_, reject) => {
    signal.addEventListener("abort", () => {
      reject(signal.reason as Error);
    });
  });
  try {
    return await Promise.race([read({ signal }), late]);
  } catch {
    return [];
  }
}
