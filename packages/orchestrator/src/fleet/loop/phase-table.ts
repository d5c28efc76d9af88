import { drain } from "./drain.ts";
import { health, recovery } from "./health.ts";
import type { Phases } from "./phase.ts";
import { scaleDown, scaleUp } from "./scale.ts";
import { gc } from "./gc.ts";
import { terminate } from "./terminate.ts";

export const PHASES: Phases = { health, recovery, scaleUp, scaleDown, drain, terminate, gc };
