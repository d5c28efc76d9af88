import type { Bar } from "./bar.ts";
import type { GrowthLaw } from "./growth.ts";
import type { Bench } from "./run/bench.ts";
import type { Percentile, Point } from "./statistics.ts";

/** A server without sessions that stand ready, one with a full pool of them, or none at all. */
export type ServerKind = "none" | "cold" | "warm";

/** One line of the table: a journey, and what the bare tools need for it. */
export interface Row {
  /** `group.name`; what `--only` looks at. */
  readonly id: string;
  readonly title: string;
  readonly unit: "ms" | "MiB/s" | "KiB" | "calls/s";
  readonly server: ServerKind;
  /** What the floor is; absent where there is none. */
  readonly floor?: string;
  /** Which percentile is compared; p50 unless given. */
  readonly by?: Percentile;
  readonly bar?: Bar;
  readonly growth?: GrowthLaw;
  /** A bar in words: the row holds where it has seen no failure. */
  readonly rule?: string;
  measure(bench: Bench): Promise<Measured>;
}

/** What a row has seen, in its unit. */
export interface Measured {
  readonly ours: readonly number[];
  readonly floor?: readonly number[];
  readonly points?: readonly Point[];
  /** For whoever reads the figures. */
  readonly notes?: readonly string[];
  /** Why the row's rule cannot be judged, where it cannot: too little was done. */
  readonly unjudged?: string;
  /** Each fails the row. */
  readonly failures?: readonly string[];
}

/** A row that this machine cannot measure, and why. */
export class Skipped extends Error {}
