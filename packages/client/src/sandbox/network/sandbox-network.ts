import type { CallOptions, KeyedOptions } from "../call.ts";

/** Who a sandbox may talk to. What is left out is denied. */
export interface SandboxNetworkPolicy {
  readonly allowPublicIngress?: boolean;
  readonly allowOutbound?: boolean;
  readonly allowList?: readonly string[];
  readonly denyList?: readonly string[];
  /** Fail if it cannot be enforced, instead of warning. */
  readonly required?: boolean;
}

/** A connection that the policy refused. */
export interface NetworkDenial {
  readonly at: Date;
  readonly destination: string;
  readonly rule: string;
}

/** A policy, and what its host says about it. */
export interface NetworkReport {
  readonly policy: Required<SandboxNetworkPolicy>;
  /** Entries of the allow list that open nothing on this host. */
  readonly ineffectiveEntries: readonly string[];
  /** The latest connections that the policy refused. */
  readonly denials: readonly NetworkDenial[];
}

/** Who a sandbox may talk to, while it runs. */
export interface SandboxNetwork {
  policy(options?: CallOptions): Promise<Required<SandboxNetworkPolicy>>;
  /** The policy with what its host says about it. */
  report(options?: CallOptions): Promise<NetworkReport>;
  /** Replaces the policy of the running sandbox. */
  update(policy: SandboxNetworkPolicy, options?: KeyedOptions): Promise<Required<SandboxNetworkPolicy>>;
  /** The latest connections that the policy refused. */
  denials(options?: CallOptions): Promise<readonly NetworkDenial[]>;
}
