import type { AskDeps } from "./ask.ts";
import type { Machine } from "./machine.ts";

/** How it stands with a part. The remedy is empty where nothing is wrong. */
export interface Finding {
  readonly status: "found" | "missing" | "broken";
  readonly version: string;
  readonly detail: string;
  readonly remedy: string;
}

export interface ProbeDeps extends AskDeps {
  /** Where commands are looked for. */
  readonly path: string;
  readonly machine: Machine;
}
