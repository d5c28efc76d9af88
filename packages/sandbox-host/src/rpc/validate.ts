import { invalidArgument } from "@turnbox/core";

const LABEL_KEY = /^[A-Za-z0-9][A-Za-z0-9._/-]{0,62}$/;
const MAX_LABELS = 64;
const MAX_LABEL_BYTES = 255;

/** Labels as the contract allows them, in an object that has nothing but them. */
export function parseLabels(field: string, labels: Readonly<Record<string, string>>): Readonly<Record<string, string>> {
  const entries = Object.entries(labels);
  if (entries.length > MAX_LABELS) throw invalidArgument(field, `must have at most ${MAX_LABELS} labels`);
  for (const [key, value] of entries) {
    if (!LABEL_KEY.test(key)) {
      throw invalidArgument(
        field,
        "keys must be 1 to 63 letters, digits, dots, underscores, slashes or hyphens, beginning with a letter or digit",
      );
    }
    if (Buffer.byteLength(value) > MAX_LABEL_BYTES)
      throw invalidArgument(field, `values must have at most ${MAX_LABEL_BYTES} bytes`);
  }
  return Object.fromEntries(entries);
}

/** A 64-bit number of the wire as a number that counts exactly. */
export function parseSize(field: string, value: bigint): number {
  if (value > BigInt(Number.MAX_SAFE_INTEGER)) throw invalidArgument(field, "must be at most 9007199254740991");
  return Number(value);
}

/** Key of an idempotent request; empty means none. */
export function parseKey(field: string, key: string): string {
  if (Buffer.byteLength(key) > MAX_KEY_BYTES) throw invalidArgument(field, `must have at most ${MAX_KEY_BYTES} bytes`);
  return key;
}

const MAX_KEY_BYTES = 256;

/** An enum value that this server knows; 0 is the default that the contract names. */
export function parseEnum<Value>(field: string, wire: number, known: ReadonlyMap<number, Value>): Value {
  const value = known.get(wire);
  if (value === undefined) throw invalidArgument(field, `has the unknown value ${wire}`);
  return value;
}
