import type { Chance } from "./chance.ts";
import type { Timeline } from "./timeline.ts";
import type { Trace } from "./trace.ts";
import type { Weather } from "./weather.ts";

/** What all parts of a run share. */
export interface SimWorld {
  readonly timeline: Timeline;
  readonly chance: Chance;
  readonly trace: Trace;
  weather: Weather;
}
