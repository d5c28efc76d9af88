import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import { invalidArgument } from "@turnbox/core";
import { MAX_TTL_MS } from "../lifecycle/extend.ts";

const MAX_DRAIN_MS = 3_600_000;

/** How long an operation waits for running tools; undefined if the request leaves it to the host. */
export function parseDrain(field: string, duration: Duration | undefined): number | undefined {
  if (duration === undefined) return undefined;
  const ms = durationMs(duration);
  if (!(ms >= 0 && ms <= MAX_DRAIN_MS)) throw invalidArgument(field, "must be from 0 to 3600 s");
  return ms;
}

/** How long something lives; null if the request sets no end. */
export function parseTtl(field: string, duration: Duration | undefined): number | null {
  if (duration === undefined) return null;
  const ms = durationMs(duration);
  if (!(ms > 0 && ms <= MAX_TTL_MS)) throw invalidArgument(field, "must be more than 0 s and at most 365 days");
  return Math.ceil(ms);
}
