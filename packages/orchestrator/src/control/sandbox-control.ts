import type { SandboxError } from "@turnbox/core";

/** What every operation takes. Cleanup inside an adapter never uses the caller's signal. */
export interface ControlCall {
  readonly signal: AbortSignal;
  /** How much time the caller has left; absent means that it did not say. */
  readonly timeoutMs?: number;
  /** Whose sandboxes the call is about; those of other tenants do not exist for it. */
  readonly tenant: string;
}

export type Labels = Readonly<Record<string, string>>;

/** Bounds of one sandbox. Absent means the provider's default. */
export interface ResourceSpec {
  /** In cores; 0.5 is half of one. */
  readonly cpus?: number;
  readonly memoryBytes?: number;
  /** Most processes and threads at once. */
  readonly pids?: number;
}

/** What happens to a sandbox when its time is over. */
export type OnTimeout = "pause" | "destroy";

export interface Lifetime {
  /** From creation. Absent means without end. */
  readonly ttlMs?: number;
  /** Since the last use. Absent means without end. */
  readonly idleTimeoutMs?: number;
  /** Absent means the provider's default. */
  readonly onTimeout?: OnTimeout;
}

/** Who a sandbox may talk to. */
export interface NetworkPolicy {
  /** Whether exposed ports may be reached without a port token. */
  readonly publicIngress: "allowed" | "denied";
  readonly outbound: "allowed" | "denied";
  /** Ranges and domain names; empty if outbound is allowed means every public address. */
  readonly allowList: readonly string[];
  /** Denied even if the allow list has them. */
  readonly denyList: readonly string[];
  /** Whether a provider that cannot enforce the policy fails the request or goes on without it. */
  readonly enforcement: "required" | "preferred";
}

export interface CreateSandboxRequest {
  /** The same key and payload again answers with the first sandbox. Empty means that each call makes a new one. */
  readonly idempotencyKey: string;
  /** Unique among the tenant's sandboxes if given: a second create is `SANDBOX_EXISTS` carrying the id. */
  readonly name?: string;
  readonly labels: Labels;
  /** `name` or `name@version` of a template; empty means the provider's default. */
  readonly template: string;
  readonly resources: ResourceSpec;
  /** The agent's own allowance of disk, on top of its template. Absent means the provider's default. */
  readonly quotaBytes?: number;
  readonly lifetime: Lifetime;
  /** Environment of everything that runs inside. Values may be secrets and are never logged. */
  readonly env: Readonly<Record<string, string>>;
  /** Absent denies everything. */
  readonly network?: NetworkPolicy;
  /** What becomes of it if no caller waits any more when it is made. Absent means kept for its key, or discarded if it has none. */
  readonly ifAbandoned?: "keep" | "discard";
  /** The session's id on its host, if the caller chose one beforehand. Absent means a fresh one. */
  readonly sessionId?: string;
}

export type SandboxState = "creating" | "active" | "paused" | "destroying" | "failed";

/** What a provider supports. */
export interface SandboxCapabilities {
  readonly snapshots: boolean;
  readonly rollback: boolean;
  readonly fork: boolean;
  readonly pause: boolean;
  readonly launchProcess: boolean;
  /** Cold storage. */
  readonly deepPause: boolean;
  /** 0 means unlimited. */
  readonly concurrentSandboxes: number;
  /** 0 means unlimited. */
  readonly maxSandboxDurationMs: number;
  /** Whether processes stay as they are over pause and resume. */
  readonly pausePreservesProcesses: boolean;
  readonly tierRouting: boolean;
  readonly streamingProgress: boolean;
  /** The storage and the runtime behind it, in the provider's own words. */
  readonly storage: string;
  readonly runtime: string;
}

/** The session behind a sandbox, as its host describes it. */
export interface SandboxSession {
  readonly sessionId: string;
  readonly state: SandboxState;
  readonly generation: number;
  /** The template version that it was made from. */
  readonly base: string;
  readonly labels: Labels;
  readonly createdAtMs: number;
  readonly expiresAtMs?: number;
  readonly turnCount: number;
  readonly snapshotCount: number;
  readonly spaceUsedBytes: number;
  readonly resources: ResourceSpec;
  /** 0 means that none is set. */
  readonly quotaBytes: number;
  readonly parentSnapshotId: string;
  /** Why it failed; empty in every state but `failed`. */
  readonly failure: string;
  readonly onTimeout: OnTimeout;
  readonly idleTimeoutMs?: number;
  readonly activeTools: number;
}

export interface Sandbox {
  readonly sandboxId: string;
  readonly name?: string;
  /** How its host is reached: `host:port`. */
  readonly address: string;
  readonly capabilities: SandboxCapabilities;
  readonly session: SandboxSession;
}

/** Where tool traffic of one sandbox goes: straight to its host. */
export interface SandboxConnection {
  readonly sandboxId: string;
  /** The session's id on the host. */
  readonly sessionId: string;
  readonly url: string;
}

/** A sandbox that was made, with the way to it if that is known without asking. */
export interface CreatedSandbox extends Sandbox {
  readonly connection?: SandboxConnection;
}

export interface ListSandboxesRequest {
  /** Only sandboxes that carry all of these labels. */
  readonly labels: Labels;
  /** At most this many; an adapter may return fewer and still have more. */
  readonly pageSize: number;
  /** From the page before; empty is the first page. */
  readonly pageToken: string;
}

export interface SandboxPage {
  readonly sandboxes: readonly Sandbox[];
  /** Empty on the last page. */
  readonly nextPageToken: string;
  /** Instances that did not answer, whose sandboxes are missing here. */
  readonly unreachableInstances: readonly string[];
}

export interface SandboxRef {
  readonly sandboxId: string;
}

/** A sandbox by its id, or by what people call it. */
export interface GetSandboxRequest extends SandboxRef {
  /** Its name, or the session part of its id; only if the id is empty. */
  readonly name?: string;
}

export interface MutateSandboxRequest extends SandboxRef {
  readonly idempotencyKey: string;
}

export interface PauseSandboxRequest extends MutateSandboxRequest {
  /** What happens to tools that run: wait for them, refuse while there are any, or end them after the drain time. */
  readonly tools: "wait" | "refuse" | "kill";
}

export interface ForkSandboxRequest extends MutateSandboxRequest {
  /** A snapshot of the parent; empty means its files as they are now. */
  readonly snapshotId: string;
  /** 1 to 100. */
  readonly count: number;
  /** Of the children. Empty means the parent's. */
  readonly labels: Labels;
}

/** One child of a fork: made, or why not. */
export type ForkResult =
  | { readonly kind: "forked"; readonly sandbox: Sandbox }
  | { readonly kind: "failed"; readonly error: SandboxError };

export interface LaunchProcessRequest extends MutateSandboxRequest {
  readonly binary: string;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  /** Port that the process listens on inside; 0 means none. */
  readonly exposePort: number;
}

export type ProcessStatus = "starting" | "running" | "exited";

export interface SandboxProcess {
  readonly processId: string;
  /** `host:port` if a port is exposed, else empty. */
  readonly address: string;
  readonly status: ProcessStatus;
  /** Only of an exited process that ended by itself. */
  readonly exitCode?: number;
}

export interface ProcessRef extends SandboxRef {
  readonly processId: string;
}

export interface KillProcessRequest extends ProcessRef {
  /** A Unix signal; 0 means SIGTERM. */
  readonly signalNumber: number;
}

export interface Template {
  readonly name: string;
  readonly digest: string;
  readonly createdAtMs: number;
  readonly sizeBytes: number;
  /** Whether the bare name means this version. */
  readonly latest: boolean;
}

export interface ImportTemplateRequest {
  readonly idempotencyKey: string;
  readonly name: string;
  /** The bytes of a tar archive, once, in order. */
  readonly archive: AsyncIterable<Uint8Array>;
}

export interface ImportedTemplate {
  readonly template: Template;
  /** How many hosts have it now. */
  readonly hosts: number;
}

/**
 * The life of sandboxes as an orchestrator sees it: made, forked, paused, ended, and given processes. One host and a whole
 * fleet both do this, so both are adapters. Tools do not go through here: they are executed at the url that `connectSandbox`
 * returns.
 *
 * # Words
 *
 * - A _sandbox_ is what a caller holds. Its id is opaque: an adapter routes by the id alone, and only it reads the id.
 * - The _session_ is the sandbox's side on its host; `SandboxSession` is how the host describes it.
 * - The _tenant_ of a call owns what the call makes. Sandboxes of other tenants do not exist for it.
 * - A _provider_ is what is behind an adapter. What it can do is asked of it (`capabilities`) and never assumed.
 *
 * # Life cycle
 *
 *     createSandbox -> creating -> active -> destroying -> (gone)
 *                                   |  ^        ^
 *                       pauseSandbox v  | resumeSandbox
 *                                  paused ------+
 *
 * A sandbox ends by `destroySandbox`, which is legal in every state, or when its lifetime is over (`Lifetime`, `OnTimeout`). It
 * is `failed` if its host cannot bring it back. `forkSandbox` makes further ones from its files, on the same host.
 *
 * # Promises
 *
 * What changes something takes an idempotency key: the same request under the same key has one effect and one answer, also
 * if the first answer was lost. The same key with another request is `IDEMPOTENCY_CONFLICT`. A create that fails leaves
 * nothing behind, or its error says by `admitted: "unknown"` that the outcome is not known; then the same call under the
 * same key finds out.
 *
 * # Example: a sandbox with a process, two forks of it, and their end
 *
 *     const call = { signal, tenant: "t1" };
 *     const made = await control.createSandbox({ idempotencyKey: "k1", name: "web", template: "debian", ...rest }, call);
 *     const { sandboxId } = made;
 *     const { url, sessionId } = await control.connectSandbox({ sandboxId }, call); // tools are executed at this url
 *     await control.launchProcess({ sandboxId, idempotencyKey: "k2", binary: "npm", args: ["start"], ...more }, call);
 *
 *     const children = await control.forkSandbox({ sandboxId, idempotencyKey: "k3", snapshotId: "", count: 2, labels }, call);
 *     // one result for each child: { kind: "forked", sandbox } or { kind: "failed", error }
 *
 *     await control.pauseSandbox({ sandboxId, idempotencyKey: "k4", tools: "wait" }, call);
 *     await control.destroySandbox({ sandboxId, idempotencyKey: "k5" }, call); // the children live on
 *
 * # Failures
 *
 * They are `SandboxError`s. An id that is not of the adapter's form is `INVALID_ARGUMENT`, one of no sandbox (or of another
 * tenant's) is `SANDBOX_NOT_FOUND`. What a provider does not have is `UNIMPLEMENTED`.
 */
export interface SandboxControl {
  /** Returns when the sandbox can be used. */
  createSandbox(request: CreateSandboxRequest, call: ControlCall): Promise<CreatedSandbox>;
  /** A provider that keeps no names refuses one as `INVALID_ARGUMENT`. */
  getSandbox(request: GetSandboxRequest, call: ControlCall): Promise<Sandbox>;
  listSandboxes(request: ListSandboxesRequest, call: ControlCall): Promise<SandboxPage>;
  /** Legal in every state, and again while the provider remembers the sandbox. */
  destroySandbox(request: MutateSandboxRequest, call: ControlCall): Promise<void>;
  connectSandbox(request: SandboxRef, call: ControlCall): Promise<SandboxConnection>;
  /**
   * Makes sandboxes from the files of another one, next to it: on the same host, each with an id of its own and without
   * a name. One result for each child, in order; a failure of the whole means that there are none. The children do not
   * depend on the parent's life.
   */
  forkSandbox(request: ForkSandboxRequest, call: ControlCall): Promise<readonly ForkResult[]>;
  pauseSandbox(request: PauseSandboxRequest, call: ControlCall): Promise<Sandbox>;
  resumeSandbox(request: MutateSandboxRequest, call: ControlCall): Promise<Sandbox>;
  launchProcess(request: LaunchProcessRequest, call: ControlCall): Promise<SandboxProcess>;
  killProcess(request: KillProcessRequest, call: ControlCall): Promise<void>;
  getProcessStatus(request: ProcessRef, call: ControlCall): Promise<SandboxProcess>;
  importTemplate(request: ImportTemplateRequest, call: ControlCall): Promise<ImportedTemplate>;
  /** By name, then newest first. */
  listTemplates(call: ControlCall): Promise<readonly Template[]>;
  /** What the provider supports as a whole, asked of it and never assumed. */
  capabilities(call: ControlCall): Promise<SandboxCapabilities>;
}

/** The URL of a `host:port` address; one that already has a scheme is returned as it is. */
export function addressToUrl(address: string): string {
  return /^https?:\/\//.test(address) ? address : `http://${address}`;
}

/** The `host:port` of a URL, with the scheme's port if none is written. */
export function urlToAddress(url: string): string {
  const { hostname, port, protocol } = new URL(url);
  const implied = protocol === "https:" ? "443" : "80";
  return `${hostname}:${port === "" ? implied : port}`;
}
