const BYTE_UNITS: ReadonlyMap<string, number> = new Map([
  ["", 1],
  ["B", 1],
  ["kB", 1e3],
  ["KB", 1e3],
  ["MB", 1e6],
  ["GB", 1e9],
  ["TB", 1e12],
  ["KiB", 2 ** 10],
  ["MiB", 2 ** 20],
  ["GiB", 2 ** 30],
  ["TiB", 2 ** 40],
]);

const DURATION_UNITS: ReadonlyMap<string, number> = new Map([
  ["ms", 1],
  ["s", 1000],
  ["m", 60_000],
  ["h", 3_600_000],
  ["d", 86_400_000],
]);

/** Whole bytes from a number of them or from text with a unit ("20GiB", "1.5 MB") or without; undefined for anything else. */
export function parseBytes(value: unknown): number | undefined {
  return typeof value === "number" ? wholeAmount(value) : parseQuantity(value, BYTE_UNITS);
}

/**
 * Whole milliseconds from text with a unit ("250ms", "30s", "1.5h"); undefined for anything else. A number without a unit is refused,
 * because it could be of any; 0 needs none.
 */
export function parseDurationMs(value: unknown): number | undefined {
  return value === 0 || value === "0" ? 0 : parseQuantity(value, DURATION_UNITS);
}

/** Why a value is no duration, and how to write one: for the message of a refusal. */
export function explainDuration(value: unknown): string {
  const shown = typeof value === "string" ? value.trim() : JSON.stringify(value);
  return /^\d+(\.\d+)?$/.test(shown)
    ? `${shown} has no unit: write ${shown}s or ${shown}ms`
    : `${JSON.stringify(value)} is not a duration like 500ms, 30s, 2m or 1h`;
}

function parseQuantity(value: unknown, units: ReadonlyMap<string, number>): number | undefined {
  if (typeof value !== "string") return undefined;
  const parts = /^(\d{1,15}(?:\.\d{1,6})?) ?([A-Za-z]*)$/.exec(value);
  const factor = units.get(parts?.[2] ?? "");
  if (parts === null || factor === undefined) return undefined;
  return wholeAmount(Math.round(Number(parts[1]) * factor));
}

const wholeAmount = (amount: number): number | undefined =>
  Number.isSafeInteger(amount) && amount >= 0 ? amount : undefined;
