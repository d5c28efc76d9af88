import type { Clock, HomeInfo, Log } from "@turnbox/core";
import type { Tracing } from "@turnbox/rpc/trace";
import type { OrchestratorConfig } from "./config.ts";

/** What an orchestrator is put together from. */
export interface OrchestratorOptions {
  readonly config: OrchestratorConfig;
  readonly home: string;
  readonly homeInfo: HomeInfo;
  /** The program of the sandbox-host. */
  readonly hostEntry: string;
  /** The whole environment of the sandbox-hosts. */
  readonly hostEnv: Readonly<Record<string, string>>;
  readonly clock: Clock;
  readonly log: Log;
  /** None unless given. */
  readonly tracing?: Tracing;
}
