import { type Duration, durationMs } from "@bufbuild/protobuf/wkt";
import { invalidArgument } from "@turnbox/core";

const MAX_DRAIN_MS = 3_600_000;

/** How long an operation waits for running tools; undefined where the request leaves it to the host. */
export function parseDrain(field: string, duration: Duration | undefined): number | undefined {
  if (duration === undefined) return undefined;
  const ms = durationMs(duration);
  if (!(ms >= 0 && ms <= MAX_DRAIN_MS)) throw invalidArgument(field, "must be from 0 to 3600 s");
  return ms;
}
