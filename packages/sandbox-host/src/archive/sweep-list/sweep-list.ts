import { randomBytes } from "node:crypto";
import { damaged } from "../damage.ts";
import { FORMAT } from "../format.ts";

export const SWEEP_LIST_KEY = "v1/sweep";
/** Parts that one list may hold. */
export const MAX_LISTED = 32_768;
/** How far the clocks of hosts and of the garbage collection may be apart, with the time of a last removal. */
export const CLOCK_MARGIN_MS = 600_000;

export const DIGEST_BYTES = 32;
const MAGIC = "TBXS";
const SALT_BYTES = 16;
const HEAD_BYTES = MAGIC.length + 1 + SALT_BYTES + 8;

/** The parts that a garbage collection is about to remove, and until when it may do so. */
export interface SweepList {
  readonly untilMs: number;
  /** 32 bytes each, in their order. */
  readonly digests: Buffer;
}

/** Magic, format, a salt that makes each list another one, `untilMs`, digests. */
export function encodeSweepList({ untilMs, digests }: SweepList): Buffer {
  const until = Buffer.alloc(8);
  until.writeBigUInt64BE(BigInt(untilMs));
  return Buffer.concat([Buffer.from(MAGIC), Buffer.from([FORMAT]), randomBytes(SALT_BYTES), until, digests]);
}

export function decodeSweepList(bytes: Buffer): SweepList {
  const isOurs = bytes.toString("latin1", 0, MAGIC.length) === MAGIC && bytes[MAGIC.length] === FORMAT;
  const digests = bytes.subarray(HEAD_BYTES);
  if (!isOurs || digests.byteLength % DIGEST_BYTES !== 0)
    throw damaged(`${SWEEP_LIST_KEY}: is not a sweep list of format ${FORMAT}`, { fault: "wrong content" });
  return { untilMs: Number(bytes.readBigUInt64BE(HEAD_BYTES - 8)), digests };
}

/** Whether the garbage collection that wrote the list has ended, in whatever way. */
export const isVoid = ({ untilMs }: SweepList, nowMs: number): boolean => nowMs > untilMs + CLOCK_MARGIN_MS;

/** Whether the part is in the list. */
export function lists({ digests }: SweepList, sha256: string): boolean {
  const wanted = Buffer.from(sha256, "hex");
  let [from, to] = [0, digests.byteLength / DIGEST_BYTES];
  while (from < to) {
    const middle = Math.floor((from + to) / 2);
    const order = wanted.compare(digests, middle * DIGEST_BYTES, (middle + 1) * DIGEST_BYTES);
    if (order === 0) return true;
    if (order < 0) to = middle;
    else from = middle + 1;
  }
  return false;
}
