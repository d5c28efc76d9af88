import type { RawProfile } from "../profile/raw-profile.ts";
import type { Backend, Prepared, PrepareRequest, Provider } from "../provider.ts";
import type { CheckRun } from "./check-run.ts";
import type { Workspace } from "./workspace.ts";

/** What the agent's keys to providers are; it may turn up nowhere. */
export const SECRET = "conformance-secret-value";

/** Makes a provider. Called again, it makes another one that sees the same runtimes, as a program that starts anew. */
export type MakeProvider = () => Provider | Promise<Provider>;

/** The provider to check, and what for. */
export interface CheckOptions {
  readonly backend: Backend;
  /** Beyond the backend; a sync mode is chosen by the check. */
  readonly profile?: Omit<RawProfile, "backend" | "syncMode">;
  readonly signal?: AbortSignal;
}

/** What the checks share. */
export interface CheckContext {
  readonly run: CheckRun;
  readonly makeProvider: MakeProvider;
  readonly provider: Provider;
  readonly workspace: Workspace;
  readonly request: PrepareRequest;
  /** The runtime is the workspace itself, so that nothing is copied. */
  readonly isShared: (prepared: Prepared) => boolean;
}
