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
  ["", 1],
  ["ms", 1],
  ["s", 1000],
  ["m", 60_000],
  ["h", 3_600_000],
  ["d", 86_400_000],
]);

/** Whole bytes from a number or from text with a unit ("20GiB", "1.5 MB"); undefined where it is neither. */
export function parseBytes(value: unknown): number | undefined {
  return parseQuantity(value, BYTE_UNITS);
}

/** Whole milliseconds from a number of them or from text with a unit ("250ms", "1.5h"); undefined where it is neither. */
export function parseDurationMs(value: unknown): number | undefined {
  return parseQuantity(value, DURATION_UNITS);
}

function parseQuantity(value: unknown, units: ReadonlyMap<string, number>): number | undefined {
  if (typeof value === "number") return Number.isSafeInteger(value) && value >= 0 ? value : undefined;
  if (typeof value !== "string") return undefined;
  const parts = /^(\d{1,15}(?:\.\d{1,6})?) ?([A-Za-z]*)$/.exec(value);
  const factor = units.get(parts?.[2] ?? "");
  if (parts === null || factor === undefined) return undefined;
  const amount = Math.round(Number(parts[1]) * factor);
  return Number.isSafeInteger(amount) ? amount : undefined;
}
