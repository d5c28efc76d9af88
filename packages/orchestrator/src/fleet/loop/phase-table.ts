import { drain } from "./drain.ts";
import { health } from "./health.ts";
import type { Phases } from "./phase.ts";
import { recovery } from "./recovery.ts";
import { scaleDown } from "./scale-down.ts";
import { scaleUp } from "./scale-up.ts";
import { gc } from "./gc.ts";
import { terminate } from "./terminate.ts";

export const PHASES: Phases = { health, recovery, scaleUp, scaleDown, drain, terminate, gc };
