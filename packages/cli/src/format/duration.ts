import { explainDuration, invalidArgument, parseDurationMs } from "@turnbox/core";

const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** How long ago, in the largest unit that fits: `now`, `42s`, `5m`, `3h`, `12d`. */
export function formatAge(ageMs: number): string {
  if (ageMs < UNIT_MS.s) return "now";
  if (ageMs < UNIT_MS.m) return `${String(Math.floor(ageMs / UNIT_MS.s))}s`;
  if (ageMs < UNIT_MS.h) return `${String(Math.floor(ageMs / UNIT_MS.m))}m`;
  if (ageMs < UNIT_MS.d) return `${String(Math.floor(ageMs / UNIT_MS.h))}h`;
  return `${String(Math.floor(ageMs / UNIT_MS.d))}d`;
}

/** A duration as people write it, with its unit: `500ms`, `30s`, `2m`, `1.5h`. More than nothing. */
export function parseDuration(raw: string, field: string): number {
  const ms = parseDurationMs(raw);
  if (ms === undefined || ms <= 0) throw invalidArgument(field, explainDuration(raw));
  return ms;
}
