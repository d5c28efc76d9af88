import type { SandboxControl, Template } from "./sandbox-control.ts";

/** How a host is at one moment, in its own words. A total of 0 means that it sets or knows no bound. */
export interface HostReport {
  readonly health: "healthy" | "degraded" | "unhealthy";
  readonly sessionCount: number;
  readonly maxSessions: number;
  readonly cpus: number;
  readonly memoryBytes: number;
  readonly memoryAvailableBytes: number;
  readonly poolBytes: number;
  readonly poolAvailableBytes: number;
  readonly templates: readonly Template[];
  /** What is wrong, for people. */
  readonly problems: readonly string[];
}

/**
 * A fleet's line to one host: everything that can be done there, and how it is. Sandbox ids are the host's session ids.
 * Its owner disposes of it; calls in flight then fail with `HOST_UNREACHABLE`.
 */
export interface HostConnection extends SandboxControl, AsyncDisposable {
  report(call: { readonly signal: AbortSignal }): Promise<HostReport>;
}
