import { type ChildProcess, execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { networkInterfaces } from "node:os";
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { createChildCommandRunner, randomToken, systemClock } from "@turnbox/core";
import { type BoundsSettings, NetworkBounds } from "../../network-policy/bounds.ts";
import { DENY_ALL, type NetworkPolicy, parsePolicy } from "../../network-policy/policy.ts";
import type { Network } from "../network.ts";
import { networkSuite } from "../network.suite.ts";
import { askFrom, connectFrom, holdFrom, makeWorld, type World } from "../world.suite.ts";
import { createNetworkNames, linkOf } from "./names.ts";
import { NetnsNetwork } from "./netns-network.ts";
import type { LookUp } from "./resolver.ts";

jest.setTimeout(60_000);

const CALL = { signal: new AbortController().signal };
const PUBLIC = "192.31.196.10";
const OTHER = "192.31.196.20";
const NEIGHBOUR = "10.250.196.2";
const METADATA = ["169.254.169.254", "169.254.170.2", "100.100.100.200"];

const CLOSED: BoundsSettings = { privateRanges: [], allowMetadata: false };
const OPENED: BoundsSettings = { privateRanges: ["10.250.196.0/24"], allowMetadata: true };

const allow = (more: Partial<NetworkPolicy> = {}): NetworkPolicy =>
  parsePolicy({ ...DENY_ALL, allowOutbound: true, required: true, ...more });

function networkIn(dataDirectory: string, lookUp: LookUp, settings = CLOSED): NetnsNetwork {
  const runner = createChildCommandRunner();
  return new NetnsNetwork({ bounds: new NetworkBounds(settings), runner, clock: systemClock, dataDirectory, lookUp });
}

networkSuite("netns", async () => {
  const dataDirectory = `/tmp/network-suite-${randomToken(8)}`;
  const names = createNetworkNames(dataDirectory);
  const addresses = ["192.31.196.50", "192.31.196.60"] as const;
  const world = await makeWorld(addresses);
  let network = networkIn(dataDirectory, () => Promise.resolve([]));
  const onMachine = (): string => {
    const namespaces = execFileSync("ip", ["netns"]).toString();
    if (!namespaces.includes(names.router)) return namespaces;
    return namespaces + execFileSync("ip", ["-n", names.router, "-br", "link"]).toString();
  };
  return {
    network,
    addresses,
    restart: async () => {
      await network[Symbol.asyncDispose]();
      network = networkIn(dataDirectory, () => Promise.resolve([]));
      return network;
    },
    connect: async (container, address) => {
      const target = `${address}:80`;
      const results = await connectFrom(names.netns(container), [target]);
      return results[target] === "connected" ? "connected" : "refused";
    },
    leftovers: (containers) => {
      const found = onMachine();
      return Promise.resolve(
        containers.filter((container) => found.includes(names.netns(container)) || found.includes(linkOf(container))),
      );
    },
    [Symbol.asyncDispose]: async () => {
      await network.open([], CALL);
      await network[Symbol.asyncDispose]();
      await world[Symbol.asyncDispose]();
    },
  };
});

describe("networks of sandboxes, by namespaces and nftables", () => {
  const dataDirectory = `/tmp/network-contract-${randomToken(8)}`;
  const names = createNetworkNames(dataDirectory);
  const answers = new Map<string, string>();
  const asked: string[] = [];
  let world: World;
  let network: Network;

  const lookUp: LookUp = (name) => {
    asked.push(name);
    const address = answers.get(name);
    return Promise.resolve(address === undefined ? [] : [{ address, ttl: 60 }]);
  };
  const makeNetwork = (settings = CLOSED): Network => networkIn(dataDirectory, lookUp, settings);

  /** A namespace with a network, in which ordinary programs stand for a sandbox. */
  const attach = async (policy: NetworkPolicy) => {
    const container = randomToken(16);
    const { nameserver } = await network.attach(container, policy, CALL);
    const netns = names.netns(container);
    return {
      container,
      netns,
      nameserver,
      connect: (...targets: readonly string[]) => connectFrom(netns, targets),
      ask: (...asking: readonly string[]) => askFrom(netns, nameserver, asking),
      [Symbol.asyncDispose]: () => network.detach(container, CALL),
    };
  };

  beforeAll(async () => {
    world = await makeWorld([PUBLIC, OTHER, NEIGHBOUR, ...METADATA]);
    network = makeNetwork();
  });
  afterAll(async () => {
    await network.open([], CALL);
    await network[Symbol.asyncDispose]();
    await world[Symbol.asyncDispose]();
  });

  it("let everything public through if nothing is listed, and no special address (attacks 41, 42)", async () => {
    await using box = await attach(allow());
    const metadata = [...METADATA, "2852039166", "0xa9fea9fe", "::ffff:169.254.169.254"].map((host) => `${host}:80`);
    const results = await box.connect(`${PUBLIC}:80`, `${NEIGHBOUR}:80`, "fd00:ec2::254:80", ...metadata);
    expect(results[`${PUBLIC}:80`]).toBe("connected");
    const refused = Object.entries(results).filter(([target]) => target !== `${PUBLIC}:80`);
    expect(refused.map(([, how]) => how)).not.toContain("connected");
    // Counted where they would arrive: not one packet did.
    expect(await world.arrived()).toEqual([`${PUBLIC}:80`]);
    const denied = (await network.denials(box.container, CALL)).map(({ destination }) => destination);
    expect(denied).toEqual(expect.arrayContaining(["169.254.169.254:80/tcp", `${NEIGHBOUR}:80/tcp`]));
  });

  /** Ends the service and starts one with other settings, which finds what is there. */
  const restart = async (settings: BoundsSettings, ...containers: readonly string[]): Promise<void> => {
    await network[Symbol.asyncDispose]();
    network = makeNetwork(settings);
    await network.open(containers, CALL);
  };

  it("let closed ranges through that the operator has opened and the list names, and no others (positive control of 41)", async () => {
    await restart(OPENED);
    {
      await using box = await attach(allow({ allowList: [`${NEIGHBOUR}/32`, "169.254.169.254/32"] }));
      expect(await box.connect(`${NEIGHBOUR}:80`, "169.254.169.254:80", `${PUBLIC}:80`)).toEqual({
        [`${NEIGHBOUR}:80`]: "connected",
        "169.254.169.254:80": "connected",
        [`${PUBLIC}:80`]: "ECONNREFUSED",
      });
      expect((await world.arrived()).toSorted()).toEqual([`${NEIGHBOUR}:80`, "169.254.169.254:80"].toSorted());
      await network.update(box.container, allow({ allowList: ["0.0.0.0/0"] }), CALL);
      const wide = await box.connect(`${NEIGHBOUR}:80`, `${PUBLIC}:80`, ...METADATA.map((address) => `${address}:80`));
      expect(Object.values(wide).filter((how) => how === "connected")).toHaveLength(1);
      expect(await world.arrived()).toEqual([`${PUBLIC}:80`]);
    }
    await restart(CLOSED);
  });

  it("keep closed what the operator has not opened, whatever the list names (attack 41)", async () => {
    const named = [`${NEIGHBOUR}/32`, "10.0.0.0/8", ...METADATA, "169.254.0.0/16", "224.0.0.0/4", "127.0.0.1/32"];
    const targets = [NEIGHBOUR, ...METADATA, "2852039166", "::ffff:169.254.169.254"].map((host) => `${host}:80`);
    await using box = await attach(allow());
    for (const allowList of [named, ["0.0.0.0/0"], ["0.0.0.0/1", "128.0.0.0/1"], ["10.0.0.0/7", "160.0.0.0/3"]]) {
      await network.update(box.container, allow({ allowList }), CALL);
      expect(Object.values(await box.connect(...targets))).not.toContain("connected");
    }
    expect(await world.arrived()).toEqual([]);
    expect(await network.denials(box.container, CALL)).toContainEqual(
      expect.objectContaining({
        destination: "169.254.169.254:80/tcp",
        rule: expect.stringContaining("allowMetadata"),
      }),
    );
    await network.update(box.container, allow({ allowList: ["0.0.0.0/0"] }), CALL);
    expect(await box.connect(`${PUBLIC}:80`)).toEqual({ [`${PUBLIC}:80`]: "connected" });
    await world.arrived();
  });

  it("close what an operator opens no longer, for open connections too, before and after the policy is put in force", async () => {
    const policy = allow({ allowList: [`${NEIGHBOUR}/32`, "169.254.169.254/32", `${PUBLIC}/32`] });
    await restart(OPENED);
    {
      await using box = await attach(policy);
      await using held = await holdFrom(box.netns, `${NEIGHBOUR}:80`);
      expect(await held.send()).toBe("echo");
      // Rules as an earlier version put them: the list comes first.
      const rule = `inet tbx s_${box.container} ip daddr { ${NEIGHBOUR}, 169.254.169.254 } meta mark set 0x7b accept`;
      execFileSync("ip", ["netns", "exec", names.router, "nft", "insert", "rule", ...rule.split(" ")]);
      await restart(CLOSED, box.container);
      const inward = [`${NEIGHBOUR}:80`, "169.254.169.254:80"];
      await world.arrived();
      expect(Object.values(await box.connect(...inward))).toEqual(["silence", "silence"]);
      expect(await held.send()).not.toBe("echo");
      expect(await world.arrived()).toEqual([]);
      await network.update(box.container, policy, CALL);
      expect(Object.values(await box.connect(...inward))).toEqual(["ECONNREFUSED", "ECONNREFUSED"]);
      expect(await box.connect(`${PUBLIC}:80`)).toEqual({ [`${PUBLIC}:80`]: "connected" });
      expect(await world.arrived()).toEqual([`${PUBLIC}:80`]);
    }
  });

  it("reach no service of the machine, at none of its addresses (attack 42)", async () => {
    const server = createServer((socket) => socket.end("host\n")).listen(0, "0.0.0.0");
    await once(server, "listening");
    const { port } = server.address() as { readonly port: number };
    await using box = await attach(allow({ allowList: ["0.0.0.0/0"] }));
    const own = Object.values(networkInterfaces())
      .flatMap((list) => list ?? [])
      .filter(({ family }) => family === "IPv4");
    const targets = own.map(({ address }) => `${address}:${String(port)}`);
    expect(targets.length).toBeGreaterThan(1);
    const results = Object.values(await box.connect(...targets, `${PUBLIC}:80`));
    expect(results.filter((how) => how === "connected")).toHaveLength(1);
    server.close();
    await world.arrived();
  });

  it("answer listed names only, and open exactly the addresses they lead to (attack 43)", async () => {
    answers.set("git.example.org", PUBLIC);
    await using box = await attach(allow({ allowList: ["*.example.org"], denyList: ["secret.example.org"] }));
    expect(await box.connect(`${PUBLIC}:80`)).toEqual({ [`${PUBLIC}:80`]: "ECONNREFUSED" });
    asked.length = 0;
    const random = Array.from({ length: 50 }, () => `${randomToken(24)}.attacker.example`);
    const results = await box.ask("git.example.org", "secret.example.org", "TXT git.example.org", ...random);
    expect(results["git.example.org"]).toBe(PUBLIC);
    expect(results["secret.example.org"]).toBe("ENOTFOUND");
    expect(new Set(random.map((name) => results[name]))).toEqual(new Set(["ENOTFOUND"]));
    expect(asked).toEqual(["git.example.org"]);
    expect(await box.connect(`${PUBLIC}:80`, `${OTHER}:80`)).toEqual({
      [`${PUBLIC}:80`]: "connected",
      [`${OTHER}:80`]: "ECONNREFUSED",
    });
    const denied = await network.denials(box.container, CALL);
    expect(denied).toContainEqual(
      expect.objectContaining({ destination: "secret.example.org", rule: "in the deny list" }),
    );
    expect(denied.length).toBeLessThanOrEqual(100);
    await world.arrived();
  });

  it("judge open connections again after a change, and let them outlive their name's answer and the service", async () => {
    answers.set("git.example.org", PUBLIC);
    await using box = await attach(allow({ allowList: ["git.example.org"] }));
    await box.ask("git.example.org");
    await using held = await holdFrom(box.netns, `${PUBLIC}:80`);
    expect(await held.send()).toBe("echo");
    const set = `p_${box.container}`;
    execFileSync("ip", ["netns", "exec", names.router, "nft", "flush", "set", "inet", "tbx", set]);
    expect(await box.connect(`${PUBLIC}:80`)).toEqual({ [`${PUBLIC}:80`]: "ECONNREFUSED" });
    expect(await held.send()).toBe("echo");
    await network[Symbol.asyncDispose]();
    network = makeNetwork();
    await network.open([box.container], CALL);
    await network.update(box.container, allow({ allowList: ["git.example.org"] }), CALL);
    expect(await held.send()).toBe("echo");
    await network.update(box.container, allow({ allowList: [`${OTHER}/32`] }), CALL);
    expect(await held.send()).not.toBe("echo");
    await world.arrived();
  });

  it("refuse a name that leads inward, also when it led outward before (attack 44)", async () => {
    answers.set("flip.example.org", PUBLIC);
    await using box = await attach(allow({ allowList: ["flip.example.org"] }));
    expect(await box.ask("flip.example.org")).toEqual({ "flip.example.org": PUBLIC });
    answers.set("flip.example.org", "169.254.169.254");
    expect(await box.ask("flip.example.org")).toEqual({ "flip.example.org": "ENOTFOUND" });
    expect(await box.connect("169.254.169.254:80")).toEqual({ "169.254.169.254:80": "ECONNREFUSED" });
    expect(await world.arrived()).toEqual([]);
  });

  it("ask no resolver without outbound, and no other than their own with it (attack 43)", async () => {
    await using box = await attach(allow());
    expect(await askFrom(box.netns, PUBLIC, ["git.example.org"])).toEqual({ "git.example.org": expect.any(String) });
    await network.update(box.container, DENY_ALL, CALL);
    asked.length = 0;
    const results = await box.ask("git.example.org");
    expect(results["git.example.org"]).not.toBe(PUBLIC);
    expect(asked).toEqual([]);
    expect(await box.connect(`${PUBLIC}:80`)).toEqual({ [`${PUBLIC}:80`]: "ECONNREFUSED" });
    await world.arrived();
  });

  it("do not see one another, and drop what claims another's address (attack 46)", async () => {
    await using one = await attach(allow({ allowList: ["0.0.0.0/0"] }));
    await using two = await attach(allow({ allowList: ["0.0.0.0/0"] }));
    const [address = ""] = addressesIn(two.netns);
    const server = await listenIn(two.netns);
    try {
      expect(await connectFrom(two.netns, [`${address}:80`])).toEqual({ [`${address}:80`]: "connected" });
      expect(await one.connect(`${address}:80`)).not.toEqual({ [`${address}:80`]: "connected" });
    } finally {
      server.kill();
    }
    expect(await one.connect(`${PUBLIC}:80`)).toEqual({ [`${PUBLIC}:80`]: "connected" });
    const [own = ""] = addressesIn(one.netns);
    execFileSync("ip", ["-n", one.netns, "addr", "add", `${address}/32`, "dev", "eth0"]);
    execFileSync("ip", ["-n", one.netns, "addr", "del", `${own}/30`, "dev", "eth0"]);
    execFileSync("ip", ["-n", one.netns, "route", "replace", gatewayOf(own), "dev", "eth0", "src", address]);
    execFileSync("ip", ["-n", one.netns, "route", "replace", "default", "via", gatewayOf(own), "src", address]);
    expect(await one.connect(`${PUBLIC}:80`)).toEqual({ [`${PUBLIC}:80`]: "silence" });
    expect(await world.arrived()).toEqual([`${PUBLIC}:80`]);
  });

  it("give the address of one that may not have ended to no other (attack 47)", async () => {
    await using kept = await attach(allow());
    const held = await attach(allow());
    const [address] = addressesIn(held.netns);
    const file = `/run/netns/${held.netns}`;
    execFileSync("mount", ["--bind", file, file]);
    await expect(network.detach(held.container, CALL)).rejects.toMatchObject({ reason: "RUNTIME_UNAVAILABLE" });
    expect(execFileSync("ip", ["-n", names.router, "-br", "link"]).toString()).not.toContain(linkOf(held.container));
    const others = [await attach(allow()), await attach(allow())];
    expect(others.flatMap(({ netns }) => addressesIn(netns))).not.toContain(address);
    await network.detach(held.container, CALL);
    expect(network.isAttached(held.container)).toBe(false);
    for (const { container } of others) await network.detach(container, CALL);
    expect(await kept.connect(`${PUBLIC}:80`)).toEqual({ [`${PUBLIC}:80`]: "connected" });
    await world.arrived();
  });

  it("are shut when the rules are removed, and have them again after the next mend (attack 48)", async () => {
    await using box = await attach(allow());
    await using neighbour = await attach(allow());
    expect(await box.connect(`${PUBLIC}:80`)).toEqual({ [`${PUBLIC}:80`]: "connected" });
    execFileSync("ip", ["netns", "exec", names.router, "nft", "flush", "ruleset"]);
    const [address = ""] = addressesIn(neighbour.netns);
    const shut = Object.values(await box.connect(`${PUBLIC}:80`, `${METADATA[0] ?? ""}:80`, `${address}:80`));
    expect(shut).not.toContain("connected");
    expect(await world.arrived()).toEqual([`${PUBLIC}:80`]);
    await network.mend(CALL);
    expect(await box.connect(`${PUBLIC}:80`, `${NEIGHBOUR}:80`)).toEqual({
      [`${PUBLIC}:80`]: "connected",
      [`${NEIGHBOUR}:80`]: "ECONNREFUSED",
    });
    await world.arrived();
  });

  it("keep their rules over a death of the service, and take a change from the next one", async () => {
    await using box = await attach(allow({ allowList: [`${PUBLIC}/32`] }));
    await network[Symbol.asyncDispose]();
    expect(await box.connect(`${PUBLIC}:80`, `${OTHER}:80`)).toEqual({
      [`${PUBLIC}:80`]: "connected",
      [`${OTHER}:80`]: "ECONNREFUSED",
    });
    network = makeNetwork();
    await network.open([box.container], CALL);
    await network.update(box.container, allow({ allowList: [`${OTHER}/32`] }), CALL);
    expect(await box.connect(`${PUBLIC}:80`, `${OTHER}:80`)).toEqual({
      [`${PUBLIC}:80`]: "ECONNREFUSED",
      [`${OTHER}:80`]: "connected",
    });
    await world.arrived();
  });

  it("can be removed one by one by a service that has not made them", async () => {
    await using kept = await attach(allow());
    const gone = await attach(allow());
    const stranger = makeNetwork();
    await stranger.detach(gone.container, CALL);
    expect(network.isAttached(gone.container)).toBe(false);
    expect(await kept.connect(`${PUBLIC}:80`)).toEqual({ [`${PUBLIC}:80`]: "connected" });
    await stranger.detach(kept.container, CALL);
    expect(execFileSync("ip", ["netns"]).toString()).not.toContain(names.router);
    await network.open([], CALL);
    await network[Symbol.asyncDispose]();
    network = makeNetwork();
    await world.arrived();
  });

  it("leave nothing on the machine when the last one goes", async () => {
    const box = await attach(allow());
    expect(execFileSync("ip", ["netns"]).toString()).toContain(names.router);
    await network.open([], CALL);
    expect(execFileSync("ip", ["netns"]).toString()).not.toContain(names.router);
    expect(execFileSync("ip", ["-br", "link"]).toString()).not.toContain(names.uplink);
    expect(execFileSync("nft", ["list", "tables"]).toString()).not.toContain(names.table);
    await network.detach(box.container, CALL);
  });
});

function addressesIn(netns: string): readonly string[] {
  const output = execFileSync("ip", ["-n", netns, "-j", "-4", "addr", "show", "dev", "eth0"]).toString();
  const [link] = JSON.parse(output) as readonly { readonly addr_info: readonly { readonly local: string }[] }[];
  return link?.addr_info.map(({ local }) => local) ?? [];
}

/** The router's end of a link is the address before. */
function gatewayOf(address: string): string {
  return address.replace(/\d+$/, (last) => String(Number(last) - 1));
}

/** A server in a namespace; settles when it listens. */
async function listenIn(netns: string): Promise<ChildProcess> {
  const script = `require("node:net").createServer((s) => s.end("x\\n")).listen(80, "0.0.0.0", () => console.log("ready"))`;
  const child = spawn("ip", ["netns", "exec", netns, process.execPath, "-e", script], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  await once(child.stdout, "data");
  return child;
}
