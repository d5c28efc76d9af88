import type { AskDeps } from "./ask.ts";
import type { Machine } from "./machine.ts";

/** The state of a part. The remedy is empty if nothing is wrong. */
export interface Finding {
  readonly status: "found" | "missing" | "broken";
  readonly version: string;
  readonly detail: string;
  readonly remedy: string;
}

export interface ProbeDeps extends AskDeps {
  /** The PATH that commands are searched in. */
  readonly path: string;
  readonly machine: Machine;
}
