import type { SandboxControl, SandboxState, Template } from "./sandbox-control.ts";

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
  /** Whether it takes new sessions, as the fleet told it last. */
  readonly admission: "open" | "closed";
  readonly templates: readonly Template[];
  /** What is wrong, for people. */
  readonly problems: readonly string[];
}

/** A command of the control loop: the host refuses it as `EPOCH_STALE` once it has seen a higher epoch. */
export interface FencedHostCall {
  readonly signal: AbortSignal;
  readonly epoch: number;
}

/** A session of any tenant, as a drain sees it. */
export interface HostSession {
  readonly sessionId: string;
  readonly tenant: string;
  readonly state: SandboxState;
}

/**
 * A fleet's line to one host: everything that can be done there, and how it is. Sandbox ids are the host's session ids.
 * Its owner disposes of it; calls in flight then fail with `HOST_UNREACHABLE`.
 */
export interface HostConnection extends SandboxControl, AsyncDisposable {
  report(call: { readonly signal: AbortSignal }): Promise<HostReport>;
  /** Of all tenants. */
  sessions(call: { readonly signal: AbortSignal }): Promise<readonly HostSession[]>;
  /** Whether the host itself takes new sessions: it keeps this over restarts, for all that route to it. */
  setAdmission(admission: "open" | "closed", call: FencedHostCall): Promise<void>;
  /** Pauses a session of any tenant, ending its tools if they do not end by themselves. Paused already is done. */
  pauseSession(session: HostSession, call: FencedHostCall): Promise<void>;
}
