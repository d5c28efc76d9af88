import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { randomToken } from "@turnbox/core";
import { DENY_ALL, type NetworkPolicy } from "../network-policy/policy.ts";
import { type Network, NO_TRAFFIC } from "./network.ts";

/** What the suite needs of a machine with a network. */
export interface NetworkHarness extends AsyncDisposable {
  readonly network: Network;
  /** Ends the service's network; what is returned is that of the next service on the same machine. */
  restart(): Promise<Network>;
  /** Two public addresses that accept connections. */
  readonly addresses: readonly [string, string];
  /** Tries a connection from inside a container. */
  connect(container: string, address: string): Promise<"connected" | "refused">;
  /** What is left of these containers' networks on the machine. */
  leftovers(containers: readonly string[]): Promise<readonly string[]>;
}

const TEST_TIMEOUT_MS = 60_000;
const METADATA = "169.254.169.254";
const call = { signal: new AbortController().signal };

function allow(...allowList: readonly string[]): NetworkPolicy {
  return { ...DENY_ALL, allowOutbound: true, required: true, allowList };
}

/** What every `Network` does that enforces policies. */
export function networkSuite(name: string, create: () => Promise<NetworkHarness>): void {
  describe(`Network: ${name}`, () => {
    jest.setTimeout(TEST_TIMEOUT_MS);
    let harness: NetworkHarness;
    let network: Network;
    let one: string;
    let other: string;
    const attached: string[] = [];
    beforeAll(async () => {
      harness = await create();
      ({ network } = harness);
      [one, other] = harness.addresses;
      await network.open([], call);
    }, TEST_TIMEOUT_MS);
    afterEach(async () => {
      const containers = attached.splice(0);
      for (const container of containers) await network.detach(container, call);
      expect(await harness.leftovers(containers)).toEqual([]);
    });
    afterAll(async () => {
      await harness[Symbol.asyncDispose]();
    }, TEST_TIMEOUT_MS);

    const attach = async (policy: NetworkPolicy): Promise<string> => {
      const container = randomToken(16);
      attached.push(container);
      await network.attach(container, policy, call);
      return container;
    };

    it("enforces policies", () => {
      expect(network.support).toEqual({ kind: "enforced" });
    });

    it("gives a container a network of its own, with what the runtime needs of it", async () => {
      const container = randomToken(16);
      attached.push(container);
      expect(network.isAttached(container)).toBe(false);
      const { netnsPath, nameserver } = await network.attach(container, allow(), call);
      expect([netnsPath, nameserver]).toEqual([
        expect.stringContaining(container),
        expect.stringMatching(/^198\.1[89]\./),
      ]);
      expect(network.isAttached(container)).toBe(true);
    });

    it("allows every public address if nothing is listed, and none without outbound", async () => {
      const open = await attach(allow());
      const shut = await attach(DENY_ALL);
      expect(await harness.connect(open, one)).toBe("connected");
      expect(await harness.connect(shut, one)).toBe("refused");
    });

    it("allows what is listed and nothing else, and reports what it refused", async () => {
      const container = await attach(allow(`${one}/32`));
      expect(await harness.connect(container, one)).toBe("connected");
      expect(await network.denials(container, call)).toEqual([]);
      expect(await harness.connect(container, other)).toBe("refused");
      expect(await network.denials(container, call)).toEqual([
        { atMs: expect.any(Number), destination: expect.stringContaining(other), rule: "not in the allow list" },
      ]);
    });

    it("keeps closed ranges shut, whatever is listed (attack 41)", async () => {
      for (const list of [[`${METADATA}/32`], ["0.0.0.0/0"]]) {
        const container = await attach(allow(...list));
        expect(await harness.connect(container, METADATA)).toBe("refused");
      }
    });

    it("enforces another policy at once, for one container alone", async () => {
      const changed = await attach(allow(`${one}/32`));
      const neighbour = await attach(allow(`${one}/32`));
      await network.update(changed, allow(`${other}/32`), call);
      expect(await harness.connect(changed, one)).toBe("refused");
      expect(await harness.connect(changed, other)).toBe("connected");
      expect(await harness.connect(neighbour, one)).toBe("connected");
    });

    it("keeps rules in force over a restart of the service, and takes changes after it", async () => {
      const container = await attach(allow(`${one}/32`));
      network = await harness.restart();
      expect(await harness.connect(container, one)).toBe("connected");
      expect(await harness.connect(container, other)).toBe("refused");
      await network.open([container], call);
      expect(network.isAttached(container)).toBe(true);
      await network.update(container, allow(`${other}/32`), call);
      expect(await harness.connect(container, one)).toBe("refused");
      expect(await harness.connect(container, other)).toBe("connected");
    });

    it("removes networks of containers that do not live any more", async () => {
      const [kept, gone] = [await attach(allow()), await attach(allow())];
      await network.open([kept], call);
      expect([network.isAttached(kept), network.isAttached(gone)]).toEqual([true, false]);
      expect(await harness.leftovers([gone])).toEqual([]);
      expect(await harness.connect(kept, one)).toBe("connected");
    });

    it("mends nothing if all is well", async () => {
      const container = await attach(allow(`${one}/32`));
      await network.mend(call);
      expect(await harness.connect(container, one)).toBe("connected");
      expect(await harness.connect(container, other)).toBe("refused");
    });

    it("detaches once and again, and forgets what it measured", async () => {
      const container = await attach(allow(`${one}/32`));
      await harness.connect(container, other);
      await network.detach(container, call);
      await network.detach(container, call);
      expect(network.isAttached(container)).toBe(false);
      expect(await network.denials(container, call)).toEqual([]);
      expect(await network.traffic(container, call)).toEqual(NO_TRAFFIC);
    });

    it("does nothing for a container without a network", async () => {
      const container = randomToken(16);
      await network.update(container, allow(), call);
      expect(network.isAttached(container)).toBe(false);
      expect(await network.denials(container, call)).toEqual([]);
      expect(await network.traffic(container, call)).toEqual(NO_TRAFFIC);
    });

    it("leaves nothing of an attach that fails", async () => {
      await attach(allow());
      const container = randomToken(16);
      await expect(network.attach(container, allow(), { signal: AbortSignal.abort() })).rejects.toThrow();
      expect(network.isAttached(container)).toBe(false);
      expect(await harness.leftovers([container])).toEqual([]);
    });
  });
}

/** What every `Network` does that enforces nothing. */
export function noNetworkSuite(name: string, create: () => Network): void {
  describe(`Network: ${name}`, () => {
    it("refuses to attach a container, and does nothing for one otherwise", async () => {
      await using network = create();
      const container = randomToken(16);
      await network.open([], call);
      await expect(network.attach(container, DENY_ALL, call)).rejects.toMatchObject({
        reason: "CAPABILITY_NOT_SUPPORTED",
        message: network.support.kind === "enforced" ? "" : network.support.why,
      });
      await network.update(container, DENY_ALL, call);
      await network.mend(call);
      await network.detach(container, call);
      expect(network.isAttached(container)).toBe(false);
      expect(await network.denials(container, call)).toEqual([]);
      expect(await network.traffic(container, call)).toEqual(NO_TRAFFIC);
    });
  });
}
