import { type Duration, durationFromMs, durationMs, type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import { invalidArgument } from "@turnbox/core";

export const toDate = (timestamp: Timestamp | undefined): Date | undefined =>
  timestamp === undefined ? undefined : new Date(timestampMs(timestamp));

/** A time that the host always tells. */
export const toDateOrEpoch = (timestamp: Timestamp | undefined): Date => toDate(timestamp) ?? new Date(0);

export const toMs = (duration: Duration | undefined): number | undefined =>
  duration === undefined ? undefined : durationMs(duration);

export function toWireDuration(field: string, ms: number): Duration {
  if (!Number.isFinite(ms) || ms < 0) throw invalidArgument(field, "must be a number of milliseconds from 0 on");
  return durationFromMs(Math.round(ms));
}
