/** What is said about a set of samples. */
export interface Summary {
  readonly n: number;
  readonly p50: number;
  readonly p95: number;
  readonly p99: number;
  readonly min: number;
  readonly max: number;
}

export type Percentile = "p50" | "p95" | "p99";

/** Sorted ascending, by the nearest rank: the answer is always a value that was measured. */
export function quantile(sorted: readonly number[], share: number): number {
  const rank = Math.max(1, Math.ceil(share * sorted.length));
  return sorted[Math.min(rank, sorted.length) - 1] ?? Number.NaN;
}

export function summarize(samples: readonly number[]): Summary {
  if (samples.length === 0) throw new Error("nothing was measured");
  const sorted = samples.toSorted((a, b) => a - b);
  return {
    n: sorted.length,
    p50: quantile(sorted, 0.5),
    p95: quantile(sorted, 0.95),
    p99: quantile(sorted, 0.99),
    min: quantile(sorted, 0),
    max: quantile(sorted, 1),
  };
}

export const median = (samples: readonly number[]): number => summarize(samples).p50;

export interface Point {
  readonly x: number;
  readonly y: number;
}

/** The slope of the line that fits the points best. */
export function slopeOf(points: readonly Point[]): number {
  if (points.length < 2) throw new Error("a line needs two points");
  const mean = (of: (point: Point) => number): number =>
    points.reduce((sum, point) => sum + of(point), 0) / points.length;
  const [middleX, middleY] = [mean(({ x }) => x), mean(({ y }) => y)];
  const spread = points.reduce((sum, { x }) => sum + (x - middleX) ** 2, 0);
  if (spread === 0) throw new Error("all points have the same x");
  return points.reduce((sum, { x, y }) => sum + (x - middleX) * (y - middleY), 0) / spread;
}

/** The exponent e of the power law y = c * x^e that fits the points best. */
export function fitExponent(points: readonly Point[]): number {
  return slopeOf(points.map(({ x, y }) => ({ x: Math.log(x), y: Math.log(y) })));
}

/** The exponent that n log n itself shows over the same range. */
export function nLogNExponent(points: readonly Point[]): number {
  return fitExponent(points.map(({ x }) => ({ x, y: x * Math.log2(Math.max(2, x)) })));
}
