import type { Call } from "@turnbox/core";
import { parseAddress } from "../../network-policy/address.ts";
import { type BoundsSettings, NetworkBounds } from "../../network-policy/bounds.ts";
import { judgeAddress, judgeName, type NetworkPolicy } from "../../network-policy/policy.ts";
import { type Attachment, type Denial, MAX_DENIALS, type Network, NO_TRAFFIC, type Traffic } from "../network.ts";

/** Networks in memory, which outlive a service that is replaced by `restarted`. */
export class FakeNetwork implements Network {
  readonly support = { kind: "enforced" } as const;
  readonly bounds: NetworkBounds;
  readonly #policies: Map<string, NetworkPolicy>;
  readonly #denials: Map<string, Denial[]>;
  #failure: Error | null = null;

  /** `settings`: default opens no closed range. */
  constructor(settings: BoundsSettings = { privateRanges: [], allowMetadata: false }, former?: FakeNetwork) {
    this.bounds = new NetworkBounds(settings);
    this.#policies = former === undefined ? new Map<string, NetworkPolicy>() : former.#policies;
    this.#denials = former === undefined ? new Map<string, Denial[]>() : former.#denials;
  }

  /** The network of the next service on the same machine. */
  restarted(): FakeNetwork {
    return new FakeNetwork(undefined, this);
  }

  /** The policies in force, by container. */
  get policies(): ReadonlyMap<string, NetworkPolicy> {
    return this.#policies;
  }

  /** The next change of a policy fails with this. */
  failNext(error: Error): void {
    this.#failure = error;
  }

  /** Stands for a connection that a container tries. */
  connect(container: string, destination: string): "connected" | "refused" {
    const policy = this.#policies.get(container);
    if (policy === undefined) return "refused";
    const judge = parseAddress(destination) === undefined ? judgeName : judgeAddress;
    const verdict = judge({ ...policy, bounds: this.bounds }, destination);
    if (verdict.kind === "allowed") return "connected";
    const denial = { atMs: 0, destination, rule: verdict.rule };
    this.#denials.set(container, [denial, ...(this.#denials.get(container) ?? [])].slice(0, MAX_DENIALS));
    return "refused";
  }

  async open(containers: readonly string[], call: Call): Promise<void> {
    for (const container of this.#policies.keys())
      if (!containers.includes(container)) await this.detach(container, call);
  }

  async attach(container: string, policy: NetworkPolicy, { signal }: Call): Promise<Attachment> {
    signal.throwIfAborted();
    this.#enforce(container, policy);
    return { netnsPath: `/fake/netns/${container}`, nameserver: "198.18.0.1" };
  }

  isAttached(container: string): boolean {
    return this.#policies.has(container);
  }

  async update(container: string, policy: NetworkPolicy, { signal }: Call): Promise<void> {
    signal.throwIfAborted();
    if (this.isAttached(container)) this.#enforce(container, policy);
  }

  async denials(container: string): Promise<readonly Denial[]> {
    return this.#denials.get(container) ?? [];
  }

  async traffic(): Promise<Traffic> {
    return NO_TRAFFIC;
  }

  async mend(): Promise<void> {
    // Its rules cannot get lost.
  }

  async detach(container: string, { signal }: Call): Promise<void> {
    signal.throwIfAborted();
    this.#policies.delete(container);
    this.#denials.delete(container);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    // It holds nothing.
  }

  #enforce(container: string, policy: NetworkPolicy): void {
    const thrown = this.#failure;
    this.#failure = null;
    if (thrown !== null) throw thrown;
    this.#policies.set(container, policy);
  }
}
