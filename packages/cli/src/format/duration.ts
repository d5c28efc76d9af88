import { invalidArgument } from "@turnbox/core";

const UNIT_MS = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** How long ago, in the largest unit that fits: `now`, `42s`, `5m`, `3h`, `12d`. */
export function formatAge(ageMs: number): string {
  if (ageMs < UNIT_MS.s) return "now";
  if (ageMs < UNIT_MS.m) return `${String(Math.floor(ageMs / UNIT_MS.s))}s`;
  if (ageMs < UNIT_MS.h) return `${String(Math.floor(ageMs / UNIT_MS.m))}m`;
  if (ageMs < UNIT_MS.d) return `${String(Math.floor(ageMs / UNIT_MS.h))}h`;
  return `${String(Math.floor(ageMs / UNIT_MS.d))}d`;
}

/** A duration as people write it: `500ms`, `30s`, `2m`, `1.5h`; a bare number is seconds. */
export function parseDuration(raw: string, field: string): number {
  const match = /^(\d+(?:\.\d+)?)(ms|s|m|h|d)?$/.exec(raw);
  const amount = Number(match?.[1]);
  const unit = (match?.[2] ?? "s") as keyof typeof UNIT_MS;
  const durationMs = Math.round(amount * UNIT_MS[unit]);
  if (!Number.isSafeInteger(durationMs) || durationMs <= 0) {
    throw invalidArgument(field, `${JSON.stringify(raw)} is not a duration like 500ms, 30s, 2m or 1h`);
  }
  return durationMs;
}
