import { describe, expect, it } from "@jest/globals";
import { type AccessVerb, type Secret, systemClock } from "@turnbox/core";
import { SessionService } from "@turnbox/protocol/turnbox/host/v1/session_pb";
import { startTestHost, type TestHost } from "../compose.suite.ts";
import { DENY_ALL } from "../network-policy/policy.ts";
import { rollBack, writeAndSeal } from "../turn/turn.suite.ts";
import { accessTo, reasonOf } from "./client.suite.ts";

function serve({ host }: TestHost) {
  const access = accessTo(host);
  return (token?: Secret) => access.client(SessionService, token);
}

const containerOf = (test: TestHost, id: string): string => test.host.registry.find(id)?.row.container ?? "";

describe("the network policy of a session", () => {
  it("denies everything unless it is given, and then there is no network at all", async () => {
    await using test = await startTestHost();
    const session = await test.create({ sessionId: "a" });
    await test.bash(session, "write /workspace/a.txt x");
    expect(test.network.policies.size).toBe(0);
    const { policy } = await serve(test)().getNetworkPolicy({ sessionId: "a" });
    expect(policy).toMatchObject({ allowOutbound: false, allowPublicIngress: false, allowList: [], denyList: [] });
  });

  it("is in force from the first boot, changes while the sandbox runs, and tells what it refused", async () => {
    await using test = await startTestHost();
    const client = serve(test)();
    await client.createSession({ sessionId: "a", networkPolicy: { allowOutbound: true, allowList: ["1.1.1.1"] } });
    const session = test.host.registry.find("a");
    if (session === undefined) throw new Error("there is no session");
    await test.bash(session, "write /workspace/a.txt x");
    const container = containerOf(test, "a");
    expect(test.network.connect(container, "1.1.1.1")).toBe("connected");
    expect(test.network.connect(container, "2.2.2.2")).toBe("refused");
    await client.updateNetworkPolicy({ sessionId: "a", policy: { allowOutbound: true, allowList: ["2.2.2.0/24"] } });
    expect(containerOf(test, "a")).toBe(container);
    expect(test.network.connect(container, "2.2.2.2")).toBe("connected");
    expect(test.network.connect(container, "1.1.1.1")).toBe("refused");
    const { policy, denials } = await client.getNetworkPolicy({ sessionId: "a" });
    expect(policy?.allowList).toEqual(["2.2.2.0/24"]);
    expect(denials.map(({ destination }) => destination)).toEqual(["1.1.1.1", "2.2.2.2"]);
  });

  it("brings a network to a sandbox that has none by a new boot, where nothing runs in it", async () => {
    await using test = await startTestHost();
    const client = serve(test)();
    const session = await test.create({ sessionId: "a" });
    await test.bash(session, "write /workspace/a.txt x");
    const before = containerOf(test, "a");
    await client.updateNetworkPolicy({ sessionId: "a", policy: { allowOutbound: true } });
    await test.bash(session, "write /workspace/b.txt x");
    const after = containerOf(test, "a");
    expect(after).not.toBe(before);
    expect(test.network.connect(after, "1.1.1.1")).toBe("connected");
    expect(session.row.generation).toBe(1);
  });

  it("stays what it was where the new one cannot be put in force (attack 48)", async () => {
    await using test = await startTestHost();
    const client = serve(test)();
    await client.createSession({ sessionId: "a", networkPolicy: { allowOutbound: true, allowList: ["1.1.1.1"] } });
    const session = test.host.registry.find("a");
    if (session === undefined) throw new Error("there is no session");
    test.network.failNext(new Error("no rules today"));
    await expect(test.bash(session, "write /workspace/a.txt x")).rejects.toThrow();
    await test.bash(session, "write /workspace/a.txt x");
    test.network.failNext(new Error("no rules today"));
    expect(await reasonOf(client.updateNetworkPolicy({ sessionId: "a", policy: { allowOutbound: true } }))).toBe(
      "INTERNAL",
    );
    const { policy } = await client.getNetworkPolicy({ sessionId: "a" });
    expect(policy?.allowList).toEqual(["1.1.1.1/32"]);
    expect(test.network.connect(containerOf(test, "a"), "2.2.2.2")).toBe("refused");
  });

  it("is copied by forks unless they are given one, and outlives the service", async () => {
    await using test = await startTestHost();
    const client = serve(test)();
    await client.createSession({ sessionId: "a", networkPolicy: { allowOutbound: true, allowList: ["1.1.1.1"] } });
    await client.forkSession({ sessionId: "a", childSessionIds: ["b"], count: 1 });
    await client.forkSession({ sessionId: "a", childSessionIds: ["c"], count: 1, networkPolicy: {} });
    const policyOf = async (sessionId: string) => (await client.getNetworkPolicy({ sessionId })).policy;
    expect((await policyOf("b"))?.allowList).toEqual(["1.1.1.1/32"]);
    expect((await policyOf("c"))?.allowOutbound).toBe(false);
    const session = test.host.registry.find("a");
    if (session === undefined) throw new Error("there is no session");
    await test.bash(session, "write /workspace/a.txt x");
    await using again = await test.restart();
    expect(again.network.connect(containerOf(again, "a"), "1.1.1.1")).toBe("connected");
    expect(again.network.connect(containerOf(again, "a"), "2.2.2.2")).toBe("refused");
  });

  it("is not widened by the token of the sandbox itself, nor by its forks (attack 41)", async () => {
    await using test = await startTestHost();
    const access = accessTo(test.host);
    const owner = access.client(SessionService);
    const networkPolicy = { allowOutbound: true, allowList: ["1.1.1.0/24"], denyList: ["evil.org"], required: true };
    const resources = { memoryBytes: 256n * 1024n * 1024n, pids: 100, cpus: 1 };
    await owner.createSession({ sessionId: "a", networkPolicy, resources });
    const as = (verbs: readonly AccessVerb[]) =>
      access.client(SessionService, access.sign({ tenant: "default", sandbox: "a", verbs }));
    const own = as(["read", "execute", "files", "turn", "lifecycle"]);
    const sessionId = "a";
    expect(await reasonOf(own.updateNetworkPolicy({ sessionId, policy: networkPolicy }))).toBe("PERMISSION_DENIED");
    const more = [
      { networkPolicy: { allowOutbound: true } },
      { networkPolicy: { ...networkPolicy, allowList: ["0.0.0.0/0"] } },
      { networkPolicy: { ...networkPolicy, allowList: ["1.1.1.1", "example.org"] } },
      { networkPolicy: { ...networkPolicy, allowPublicIngress: true } },
      { networkPolicy: { ...networkPolicy, denyList: [] } },
      { networkPolicy: { ...networkPolicy, required: false } },
      { resources: { memoryBytes: 512n * 1024n * 1024n } },
      { resources: { pids: 101 } },
      { resources: { cpus: 1.5 } },
    ];
    for (const wanted of more)
      expect([wanted, await reasonOf(own.forkSession({ sessionId, ...wanted }))]).toEqual([
        wanted,
        "PERMISSION_DENIED",
      ]);
    expect(test.host.registry.all()).toHaveLength(1);
    expect((await owner.getSession({ sessionId })).session?.snapshotCount).toBe(0);
    const narrower = { networkPolicy: { ...networkPolicy, allowList: ["1.1.1.1"] }, resources: { pids: 50 } };
    await own.forkSession({ sessionId, childSessionIds: ["narrow"], count: 1, ...narrower });
    await own.forkSession({ sessionId, childSessionIds: ["same"], count: 1 });
    const listOf = async (id: string) => (await owner.getNetworkPolicy({ sessionId: id })).policy?.allowList;
    expect([await listOf("narrow"), await listOf("same")]).toEqual([["1.1.1.1/32"], ["1.1.1.0/24"]]);
    const wide = { networkPolicy: { allowOutbound: true } };
    await as(["lifecycle", "network"]).forkSession({ sessionId, childSessionIds: ["wide"], count: 1, ...wide });
    await as(["network"]).updateNetworkPolicy({ sessionId, policy: { allowOutbound: true } });
    await owner.forkSession({ sessionId, childSessionIds: ["large"], count: 1, resources: { pids: 200 } });
    expect([await listOf("wide"), await listOf("a")]).toEqual([[], []]);
  });

  it("is in force in the sandbox that a rollback boots, and the old one's network goes", async () => {
    await using test = await startTestHost();
    await serve(test)().createSession({
      sessionId: "a",
      networkPolicy: { allowOutbound: true, allowList: ["1.1.1.1"] },
    });
    const session = test.host.registry.find("a");
    if (session === undefined) throw new Error("there is no session");
    const snapshotId = await writeAndSeal(test, session, "x");
    const before = containerOf(test, "a");
    await rollBack(test, session, snapshotId);
    const after = containerOf(test, "a");
    expect(after).not.toBe(before);
    expect(test.network.connect(after, "1.1.1.1")).toBe("connected");
    expect(test.network.connect(after, "2.2.2.2")).toBe("refused");
    const deadline = performance.now() + 5000;
    while (test.network.policies.has(before) && performance.now() < deadline) await systemClock.sleep(10);
    expect([...test.network.policies.keys()]).toEqual([after]);
  });

  it("goes with its container when the session is destroyed", async () => {
    await using test = await startTestHost();
    const client = serve(test)();
    await client.createSession({ sessionId: "a", networkPolicy: { allowOutbound: true } });
    const session = test.host.registry.find("a");
    if (session === undefined) throw new Error("there is no session");
    await test.bash(session, "write /workspace/a.txt x");
    expect(test.network.policies.size).toBe(1);
    await client.destroySession({ sessionId: "a" });
    const deadline = performance.now() + 5000;
    while (test.host.registry.find("a") !== undefined && performance.now() < deadline) {
      await systemClock.sleep(10);
    }
    expect(test.network.policies.size).toBe(0);
  });

  it("is refused where it names what the operator has not opened, and changes nothing (attack 41)", async () => {
    await using test = await startTestHost();
    const client = serve(test)();
    const inward = { allowOutbound: true, allowList: ["1.1.1.1", "169.254.169.254/32"] };
    const messageOf = (call: Promise<unknown>) => call.then(String, (thrown: unknown) => String(thrown));
    expect(await messageOf(client.createSession({ sessionId: "a", networkPolicy: inward }))).toMatch(
      /network_policy\.allow_list\[1\].*allowMetadata/,
    );
    expect(test.host.registry.find("a")).toBeUndefined();
    await client.createSession({ sessionId: "a", networkPolicy: { allowOutbound: true, allowList: ["1.1.1.1"] } });
    expect(await messageOf(client.updateNetworkPolicy({ sessionId: "a", policy: inward }))).toMatch(
      / policy\.allow_list\[1\].*allowMetadata/,
    );
    expect(await reasonOf(client.forkSession({ sessionId: "a", networkPolicy: inward }))).toBe("INVALID_ARGUMENT");
    expect((await client.getNetworkPolicy({ sessionId: "a" })).policy?.allowList).toEqual(["1.1.1.1/32"]);
    expect(test.host.registry.all()).toHaveLength(1);
  });

  it("of an earlier version is held to what the operator opens, and told with what it does not open", async () => {
    await using test = await startTestHost();
    const client = serve(test)();
    await client.createSession({ sessionId: "a", networkPolicy: { allowOutbound: true, allowList: ["1.1.1.1"] } });
    const session = test.host.registry.find("a");
    if (session === undefined) throw new Error("there is no session");
    const old = ["169.254.169.254/32", "10.0.0.0/8", "1.1.1.1/32"];
    await session.commit((row) => ({ ...row, networkPolicy: { ...DENY_ALL, allowOutbound: true, allowList: old } }));
    await using again = await test.restart();
    const [revived] = again.host.registry.all();
    if (revived === undefined) throw new Error("there is no session");
    await again.bash(revived, "write /workspace/a.txt x");
    const reached = [...old, "2.2.2.2"].map((entry) =>
      again.network.connect(containerOf(again, "a"), entry.replace(/\/.*/, "")),
    );
    expect(reached).toEqual(["refused", "refused", "connected", "refused"]);
    const told = await serve(again)().getNetworkPolicy({ sessionId: "a" });
    expect(told.policy?.allowList).toEqual(old);
    expect(told.ineffectiveEntries).toEqual(old.slice(0, 2));
    expect(told.closedRanges).toContainEqual(
      expect.objectContaining({ range: "10.0.0.0/8", setting: "privateRanges" }),
    );
    await serve(again)().forkSession({ sessionId: "a", childSessionIds: ["b"], count: 1 });
    expect((await serve(again)().getNetworkPolicy({ sessionId: "b" })).policy?.allowList).toEqual(old);
  });

  it("is refused where it makes no sense", async () => {
    await using test = await startTestHost();
    const client = serve(test)();
    expect(await reasonOf(client.createSession({ networkPolicy: { allowList: ["not a name!"] } }))).toBe(
      "INVALID_ARGUMENT",
    );
    await client.createSession({ sessionId: "a" });
    expect(await reasonOf(client.updateNetworkPolicy({ sessionId: "a" }))).toBe("INVALID_ARGUMENT");
    expect(await reasonOf(client.updateNetworkPolicy({ sessionId: "a", expectedGeneration: 9, policy: {} }))).toBe(
      "GENERATION_CHANGED",
    );
  });
});

describe("CreatePortAccess", () => {
  it("gives the address on the advertised host, and the same one again (D21)", async () => {
    await using test = await startTestHost();
    const client = serve(test)();
    await client.createSession({ sessionId: "a" });
    await client.createSession({ sessionId: "b" });
    const first = await client.createPortAccess({ sessionId: "a", port: 8080, idempotencyKey: "k" });
    const again = await client.createPortAccess({ sessionId: "a", port: 8080, idempotencyKey: "k" });
    const other = await client.createPortAccess({ sessionId: "b", port: 8080 });
    expect(first.url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/);
    expect([again.url, again.token]).toEqual([first.url, first.token]);
    expect(other.url).not.toBe(first.url);
    expect(await statusOf(first.url, other.token)).toBe(401);
    // The token is good; inside the fake sandbox nobody listens.
    expect(await statusOf(first.url, first.token)).toBe(502);
  });

  it("listens where it says: at the advertised address, and at no other (D21)", async () => {
    await using test = await startTestHost({ bindAddress: "127.0.0.2", advertiseAddr: "127.0.0.2" });
    const client = serve(test)();
    await client.createSession({ sessionId: "a" });
    const { url, token } = await client.createPortAccess({ sessionId: "a", port: 8080 });
    expect(url).toMatch(/^http:\/\/127\.0\.0\.2:\d+$/);
    expect(await statusOf(url, token)).toBe(502);
    await expect(statusOf(url.replace("127.0.0.2", "127.0.0.1"), token)).rejects.toThrow();
  });

  it("ends with the generation and with the session (attack 47)", async () => {
    await using test = await startTestHost();
    const client = serve(test)();
    await client.createSession({ sessionId: "a" });
    const { url, token } = await client.createPortAccess({ sessionId: "a", port: 8080 });
    const session = test.host.registry.find("a");
    await session?.commit((row) => ({ ...row, generation: row.generation + 1 }));
    await untilClosed(url, token);
    const next = await client.createPortAccess({ sessionId: "a", port: 8080 });
    expect(next.url).not.toBe(url);
    expect(await statusOf(next.url, token)).toBe(401);
    await client.destroySession({ sessionId: "a" });
    await untilClosed(next.url, next.token);
  });

  it("keeps the address over a death of the service, and its token", async () => {
    await using test = await startTestHost();
    await serve(test)().createSession({ sessionId: "a" });
    const { url, token } = await serve(test)().createPortAccess({ sessionId: "a", port: 8080 });
    await using _again = await test.restart();
    expect(await statusOf(url, token)).toBe(502);
    expect(await statusOf(url, "tbp1.-.x")).toBe(401);
  });

  it("refuses ports that are none, old generations and other tenants", async () => {
    await using test = await startTestHost();
    const client = serve(test)();
    await client.createSession({ sessionId: "a" });
    expect(await reasonOf(client.createPortAccess({ sessionId: "a", port: 0 }))).toBe("INVALID_ARGUMENT");
    expect(await reasonOf(client.createPortAccess({ sessionId: "a", port: 70_000 }))).toBe("INVALID_ARGUMENT");
    expect(await reasonOf(client.createPortAccess({ sessionId: "a", port: 80, expectedGeneration: 7 }))).toBe(
      "GENERATION_CHANGED",
    );
  });
});

async function statusOf(url: string, token: string): Promise<number> {
  const { status } = await fetch(url, { headers: { "turnbox-port-token": token, connection: "close" } });
  return status;
}

async function untilClosed(url: string, token: string): Promise<void> {
  const deadline = performance.now() + 5000;
  while (performance.now() < deadline) {
    const outcome = await statusOf(url, token).catch(() => "closed");
    if (outcome === "closed") return;
    await systemClock.sleep(10);
  }
  throw new Error("the address still answers");
}
