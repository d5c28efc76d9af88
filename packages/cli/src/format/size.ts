import { invalidArgument, parseBytes } from "@turnbox/core";

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"] as const;

/** A size for people: whole bytes, then one decimal in binary units. */
export function formatSize(bytes: number): string {
  const unit = bytes < 1 ? 0 : Math.min(UNITS.length - 1, Math.floor(Math.log2(bytes) / 10));
  const amount = bytes / 1024 ** unit;
  if (unit === 0) return `${String(bytes)} B`;
  // 1023.96 KiB would be written as 1024.0 KiB.
  const carried = unit < UNITS.length - 1 && amount.toFixed(1) === "1024.0";
  return carried ? `1.0 ${UNITS[unit + 1] ?? ""}` : `${amount.toFixed(1)} ${UNITS[unit] ?? ""}`;
}

/** A size as people write it, in the units of the configuration: `1048576`, `512MiB`, `2GB`. */
export function parseSize(raw: string, field: string): number {
  const bytes = parseBytes(raw);
  if (bytes === undefined || bytes === 0) {
    throw invalidArgument(field, `${JSON.stringify(raw)} is not a size like 512MiB or 2GiB`);
  }
  return bytes;
}
