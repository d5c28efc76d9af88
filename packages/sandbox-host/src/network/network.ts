import type { NetworkBounds } from "../network-policy/bounds.ts";
import type { NetworkPolicy, NetworkSupport } from "../network-policy/policy.ts";

interface Call {
  readonly signal: AbortSignal;
}

/** How a container gets at its network. */
export interface Attachment {
  /** The network namespace that the container is started in. */
  readonly netnsPath: string;
  /** The only resolver it can ask. */
  readonly nameserver: string;
}

/** A connection or a name that a policy refused. */
export interface Denial {
  readonly atMs: number;
  /** `address:port/protocol`, or the name. */
  readonly destination: string;
  readonly rule: string;
}

/** What has gone over a container's link since its boot, the headers of Ethernet included. */
export interface Traffic {
  readonly receivedBytes: number;
  readonly sentBytes: number;
}

export const NO_TRAFFIC: Traffic = { receivedBytes: 0, sentBytes: 0 };

/**
 * The networks of containers: each has one of its own that leads to nothing but what its policy allows. Networks outlive
 * the service, as containers do. What cannot be put in force fails; what has lost its rules is shut.
 */
export interface Network extends AsyncDisposable {
  readonly support: NetworkSupport;
  /** What policies can open at all; those of earlier settings are held to it too. */
  readonly bounds: NetworkBounds;
  /** Takes away the networks of containers that are not among these. Idempotent. */
  open(containers: readonly string[], call: Call): Promise<void>;
  /** Makes the network of a container that is about to be booted. */
  attach(container: string, policy: NetworkPolicy, call: Call): Promise<Attachment>;
  /** Whether the container has a network. */
  isAttached(container: string): boolean;
  /** Puts a policy in force at once, for open connections too; also for a network that an earlier service made. */
  update(container: string, policy: NetworkPolicy, call: Call): Promise<void>;
  /** The latest refusals, newest first, at most 100. */
  denials(container: string, call: Call): Promise<readonly Denial[]>;
  /** Nothing where the container has no network. */
  traffic(container: string, call: Call): Promise<Traffic>;
  /** Puts rules that somebody took away in force again. */
  mend(call: Call): Promise<void>;
  /** Takes the network of a container away. Idempotent. */
  detach(container: string, call: Call): Promise<void>;
}

export const MAX_DENIALS = 100;
