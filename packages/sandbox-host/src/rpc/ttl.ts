import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import { invalidArgument } from "@turnbox/core";
import { MAX_TTL_MS } from "../lifecycle/extend.ts";

/** How long something lives; null where the request sets no end. */
export function parseTtl(field: string, duration: Duration | undefined): number | null {
  if (duration === undefined) return null;
  const ms = durationMs(duration);
  if (!(ms > 0 && ms <= MAX_TTL_MS)) throw invalidArgument(field, "must be more than 0 s and at most 365 days");
  return Math.ceil(ms);
}
