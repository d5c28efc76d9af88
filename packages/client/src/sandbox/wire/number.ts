import { invalidArgument } from "@turnbox/core";

const MAX = BigInt(Number.MAX_SAFE_INTEGER);

/** A count of the wire as a number. What no number can tell exactly is told as the largest that can. */
export const toNumber = (value: bigint): number => Number(value > MAX ? MAX : value);

/** A whole number from 0 on, for the wire. */
export function toWireCount(field: string, value: number | undefined): bigint {
  if (value === undefined) return 0n;
  if (!Number.isSafeInteger(value) || value < 0) throw invalidArgument(field, "must be a whole number from 0 on");
  return BigInt(value);
}

/** The generation that a caller means, for a request; nothing if none is meant. */
export const toWireGeneration = (value: number | undefined): { readonly expectedGeneration?: number } =>
  value === undefined ? {} : { expectedGeneration: toWireUint32("expectedGeneration", value) };

const MAX_UINT32 = 2 ** 32 - 1;

/** A whole number that the wire has 32 bits for. */
export function toWireUint32(field: string, value: number): number {
  if (!Number.isSafeInteger(value) || value < 0 || value > MAX_UINT32)
    throw invalidArgument(field, `must be a whole number from 0 to ${String(MAX_UINT32)}`);
  return value;
}
