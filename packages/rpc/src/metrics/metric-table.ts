/** A metric as it is declared: the only place that knows its name, meaning and labels. */
export interface MetricSpec {
  readonly kind: "counter" | "gauge" | "histogram";
  /** Ends with its unit: `_seconds`, `_bytes`; with `_total` if it counts. */
  readonly name: string;
  readonly help: string;
  /** Each has few values, all known beforehand: no ids, no names that users choose. */
  readonly labels: readonly string[];
  /** Upper bounds of a histogram's buckets. */
  readonly bucketsSeconds?: readonly number[];
}

/** All metrics of a service, by the key that code uses. */
export type MetricTable = Readonly<Record<string, MetricSpec>>;

/** Values for each label of a metric. */
export type LabelsOf<Spec extends MetricSpec> = Readonly<Record<Spec["labels"][number], string>>;

export type KeysOf<Table extends MetricTable, Kind extends MetricSpec["kind"]> = {
  [Key in keyof Table]: Table[Key]["kind"] extends Kind ? Key : never;
}[keyof Table] &
  string;

/** From a call that answers at once to one that waits for a machine. */
export const CALL_BUCKETS_SECONDS = [
  0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 180,
] as const;

/** From a container's start to a drain of an hour. */
export const MACHINE_BUCKETS_SECONDS = [1, 5, 10, 30, 60, 120, 300, 600, 1800, 3600] as const;
