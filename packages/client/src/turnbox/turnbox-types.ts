import type { CallOptions, KeyedOptions } from "../sandbox/call.ts";
import type { SandboxNetworkPolicy } from "../sandbox/network/sandbox-network.ts";
import type { SandboxInfo } from "../sandbox/sandbox-info.ts";
import type { ConnectionFactory } from "../connection.ts";
import type { Clock } from "@turnbox/core";

/**
 * Where the server is. Each is taken from what is given, else from the environment (TURNBOX_URL, TURNBOX_TOKEN,
 * TURNBOX_TOKEN_FILE, TURNBOX_PORT, TURNBOX_HOME), else from what the home's running server wrote down. A `home` that is
 * given means its own server, whatever the environment says. A home's token goes to this machine only.
 */
export interface TurnboxOptions {
  readonly url?: string;
  readonly token?: string;
  readonly tokenFile?: string;
  readonly home?: string;
  /** How connections are made; HTTP/2 unless given. */
  readonly connect?: ConnectionFactory;
  /** The environment variables; the process's own unless given. */
  readonly env?: Readonly<Record<string, string | undefined>>;
  /** Time; the system's unless given. */
  readonly clock?: Clock;
}

/** The sandbox that is wanted. */
export interface CreateOptions extends KeyedOptions {
  /** Unique in the tenant; a name that is taken is SANDBOX_EXISTS with the id in `metadata.sandboxId`. */
  readonly name?: string;
  /** `template` or `template@version`; `mini` unless given. */
  readonly template?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly resources?: { readonly cpus?: number; readonly memoryBytes?: number; readonly pids?: number };
  readonly quotaBytes?: number;
  /** For every tool and process inside. Values are never logged. */
  readonly env?: Readonly<Record<string, string>>;
  readonly ttlMs?: number;
  readonly idleTimeoutMs?: number;
  readonly onTimeout?: "pause" | "destroy";
  readonly network?: SandboxNetworkPolicy;
}

/** Which sandboxes. */
export interface ListOptions extends CallOptions {
  readonly labels?: Readonly<Record<string, string>>;
}

/** Sandboxes by instance, then oldest first. */
export interface SandboxList {
  readonly sandboxes: readonly SandboxInfo[];
  /** Instances that did not answer, whose sandboxes may be missing. */
  readonly unreachableInstances: readonly string[];
}

/** How a sandbox is destroyed that is waited for. */
export interface DestroyAndWaitOptions extends KeyedOptions {
  /** How long to wait for the removal; 15 s unless given. */
  readonly waitMs?: number;
  /** Called when the decision is durable, and the waiting begins. */
  readonly onDestroyed?: () => void;
}

/** What is left of a destroyed sandbox on its host: nothing, something that is still being removed, or it is not known. */
export type Residue = "gone" | "pending" | "unknown";

/** A template that was imported. */
export interface ImportedTemplate {
  readonly template: Template;
  /** How many hosts have it now. */
  readonly hosts: number;
}

/** A version of a template. */
export interface Template {
  readonly name: string;
  /** Of its content, in hex; `name@digest` makes a sandbox of exactly this version. */
  readonly digest: string;
  readonly createdAt: Date;
  readonly sizeBytes: number;
  /** The bare name means this version. */
  readonly latest: boolean;
}
