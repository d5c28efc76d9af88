import type { ReceiptRow } from "../../record/row.ts";
import { amount, type Decoder, fields, integer, list, nullable, oneOf, text } from "../decode.ts";
import type { ArchivedCall } from "./manifest.ts";

/** Tool calls of one manifest. */
export const MAX_CALLS = 20_000;
/** Receipts of one manifest. */
export const MAX_RECEIPTS = 20_000;
/** Characters of one result. */
const MAX_RESULT = 256 * 1024;
const MAX_KEY = 4096;
const MAX_HASH = 256;
/** Characters of all that `keepNewest` keeps. */
const MAX_CHARACTERS = 8 * 1024 * 1024;

interface Kept {
  readonly atMs: number;
  readonly result: string | null;
}

/**
 * The newest of a ledger or of receipts, as many as a manifest takes, in their order. What is left out, and what has a result
 * that is too large, is forgotten, as it is on a host beyond the bounds of its records.
 */
export function keepNewest<Row extends Kept>(rows: readonly Row[], maxRows: number): readonly Row[] {
  const newest = rows.toSorted((a, b) => b.atMs - a.atMs).slice(0, maxRows);
  const kept = new Set<Row>();
  let characters = 0;
  for (const row of newest) {
    characters += JSON.stringify(row).length;
    if (characters > MAX_CHARACTERS) break;
    if ((row.result?.length ?? 0) <= MAX_RESULT) kept.add(row);
  }
  return rows.filter((row) => kept.has(row));
}

const call: Decoder<ArchivedCall> = fields<ArchivedCall>({
  callId: text(MAX_KEY),
  payloadHash: text(MAX_HASH),
  generation: integer(0),
  headGeneration: integer(0),
  status: oneOf("started", "finished", "doubtful"),
  result: nullable(text(MAX_RESULT)),
  atMs: amount,
});

const receipt: Decoder<ReceiptRow> = fields<ReceiptRow>({
  scope: text(MAX_KEY),
  key: text(MAX_KEY),
  payloadHash: text(MAX_HASH),
  result: text(MAX_RESULT),
  atMs: amount,
});

export const calls = list(call, MAX_CALLS);
export const receipts = list(receipt, MAX_RECEIPTS);
