import type { Call } from "@turnbox/core";
import type { NetworkBounds } from "../network-policy/bounds.ts";
import type { NetworkPolicy, NetworkSupport } from "../network-policy/policy.ts";

/*
 * The network port: what containers can connect to.
 *
 * Words. A container's **network** is its own: it leads to nothing but what its policy allows, and to no other container. It is
 * named by the container's id. A **policy** is data (`network-policy/`): lists of addresses and names. The **bounds** are the
 * operator's: closed ranges that no policy opens. To **attach** makes a network, and its **attachment** is what the runtime needs
 * to start the container in it. To **enforce** a policy is to put its rules in force. A **denial** is a connection or a name that a
 * policy refused.
 *
 * Life. `open` comes first, once for each start of the service, with the ids of the containers that live. Then each container's
 * network goes
 *
 *     attach -> attached -> detach
 *                 |  ^
 *               update, mend
 *
 * `attach` comes before the container is started and `detach` after it has ended. A network outlives the
 * service, as its container does: rules stay in force while no service runs, and the next service goes on after `open`. A change
 * of the policy of such a network is made by `update` as well.
 *
 * Promises. There is no moment in which a container has a network without rules. A policy that cannot be enforced fails the call,
 * and the rules before stay. A network that has lost its rules is shut until `mend` has put them in force again. Changes hold for
 * open connections too. An `attach` that fails leaves nothing; all other operations are idempotent, and after an error they are
 * called again. What is measured (`denials`, `traffic`) ends with the network. Failures are `SandboxError`s:
 * `RUNTIME_UNAVAILABLE`, and `CAPABILITY_NOT_SUPPORTED` for `attach` if `support` is not `enforced`. Whether a host can accept a
 * policy at all is decided before, by `assertEnforceable`.
 *
 * An example: a container that may clone from one host, then from none.
 *
 *     await network.open(await runtime.list(call), call);
 *     const policy = { ...DENY_ALL, allowOutbound: true, allowList: ["git.example.org"] };
 *     const attachment = await network.attach(id, policy, call);
 *     await runtime.start({ id, rootPath, hostname: "box", limits: {}, network: attachment }, call);
 *     // ... git clone https://git.example.org/a works, curl https://example.com does not ...
 *     await network.denials(id, call); // [{ destination: "example.com", rule: "not in the allow list", ... }]
 *     await network.update(id, DENY_ALL, call); // also ends what is open
 *     await runtime.stop(id, call);
 *     await network.detach(id, call); // its address can be given to another container now
 *
 * Every adapter passes `network.suite.ts`.
 */

/** What the runtime needs to start a container in its network. */
export interface Attachment {
  /** The network namespace that the container is started in. */
  readonly netnsPath: string;
  /** The only resolver that the container reaches. */
  readonly nameserver: string;
}

/** A connection or a name that a policy refused. */
export interface Denial {
  readonly atMs: number;
  /** `address:port/protocol`, or the name. */
  readonly destination: string;
  /** The rule that refused it, as a sentence. */
  readonly rule: string;
}

/** The bytes that have passed over a container's link since its boot, Ethernet headers included. */
export interface Traffic {
  readonly receivedBytes: number;
  readonly sentBytes: number;
}

export const NO_TRAFFIC: Traffic = { receivedBytes: 0, sentBytes: 0 };

/** The most denials that `denials` returns. */
export const MAX_DENIALS = 100;

export interface Network extends AsyncDisposable {
  /** What this host can do about policies. If it is not `enforced`, containers have no network of their own. */
  readonly support: NetworkSupport;
  /** The closed ranges, which hold for policies of earlier settings too. */
  readonly bounds: NetworkBounds;
  /** Takes up the networks of an earlier service, and removes those of containers that are not among these. */
  open(containers: readonly string[], call: Call): Promise<void>;
  /** Makes the network of a container that is not started yet, with the policy in force. */
  attach(container: string, policy: NetworkPolicy, call: Call): Promise<Attachment>;
  isAttached(container: string): boolean;
  /** Enforces another policy, for open connections too. Does nothing if the container has no network. */
  update(container: string, policy: NetworkPolicy, call: Call): Promise<void>;
  /** The latest denials, newest first; none if the container has no network. */
  denials(container: string, call: Call): Promise<readonly Denial[]>;
  /** `NO_TRAFFIC` if the container has no network. */
  traffic(container: string, call: Call): Promise<Traffic>;
  /** Puts rules in force again that were removed from the machine. */
  mend(call: Call): Promise<void>;
  /** Removes the network of a container, if it has one. When this returns, nothing of it is left. */
  detach(container: string, call: Call): Promise<void>;
}
