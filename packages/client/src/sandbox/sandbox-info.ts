/** What a sandbox is doing. `failed` is left by `repair()` or `destroy()`. */
export type SandboxState = "creating" | "active" | "paused" | "destroying" | "failed";

/** What sandboxes can do, which follows from the backends of their hosts. */
export interface SandboxCapabilities {
  readonly snapshots: boolean;
  readonly rollback: boolean;
  readonly pause: boolean;
  readonly launchProcess: boolean;
  readonly deepPause: boolean;
  readonly pausePreservesProcesses: boolean;
  readonly tierRouting: boolean;
  readonly streamingProgress: boolean;
  readonly fork: boolean;
  /** Most sandboxes at once; 0 means no limit. */
  readonly concurrentSandboxes: number;
  readonly maxSandboxDurationMs: number | undefined;
  readonly storage: string;
  readonly runtime: string;
}

/** What is known of a sandbox. */
export interface SandboxInfo {
  readonly id: string;
  readonly name: string | undefined;
  readonly state: SandboxState;
  /** Raised by rollbacks, crashes of the sandbox and unclean reboots; process ids and offsets belong to one. */
  readonly generation: number;
  /** `template@version`, or the snapshot it was made from. */
  readonly base: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly createdAt: Date;
  readonly expiresAt: Date | undefined;
  /** How long it may be idle; undefined means without end. */
  readonly idleTimeoutMs: number | undefined;
  readonly onTimeout: "pause" | "destroy";
  readonly turnCount: number;
  readonly snapshotCount: number;
  readonly spaceUsedBytes: number;
  readonly parentSnapshotId: string | undefined;
  /** Why it is `failed`. */
  readonly failure: string | undefined;
  readonly activeTools: number;
  /** The host's address, `host:port`. */
  readonly address: string;
  readonly capabilities: SandboxCapabilities;
}

/** How a sandbox is after a repair. */
export interface RepairedSandbox extends SandboxInfo {
  /** What was done, in words; empty if there was nothing to do. */
  readonly actions: readonly string[];
}

/** Where a sandbox's host is, and a token for this sandbox alone. */
export interface SandboxAccess {
  readonly url: string;
  /** Sent as a bearer token. */
  readonly token: string;
  readonly sessionId: string;
  readonly expiresAt: Date | undefined;
}

/** What a sandbox uses at this moment. */
export interface SandboxStats {
  readonly at: Date;
  readonly cpuTimeMs: number;
  readonly memoryBytes: number;
  readonly memoryLimitBytes: number;
  readonly pids: number;
  readonly referencedBytes: number;
  readonly spaceUsedBytes: number;
  readonly networkReceivedBytes: number;
  readonly networkSentBytes: number;
}
