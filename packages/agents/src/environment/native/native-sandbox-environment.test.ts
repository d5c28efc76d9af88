import { describe, expect, it } from "@jest/globals";
import { createManualClock } from "@turnbox/client/fake";
import { environmentSuite, reasonOf, toolRequest } from "../environment.suite.ts";
import { createFakeHost, type FakeHost, ZFS_GVISOR } from "../fake/fake-host.suite.ts";
import { createFakeSessions } from "../fake/fake-sessions.suite.ts";
import { defaultConfig } from "./native-sandbox-config.ts";
import { createNativeSandboxEnvironment } from "./native-sandbox-environment.ts";

let sessions = 0;
const nextId = (): string => {
  sessions += 1;
  return `native-${String(sessions)}`;
};
const LOCAL_DISK = { ...ZFS_GVISOR, snapshots: false, rollback: false, storage: "local-disk" };
const NO_RUNTIME = { ...ZFS_GVISOR, tierRouting: false, runtime: "none" };

const open = async (make: () => FakeHost, config = defaultConfig()) => {
  const host = make();
  return {
    environment: () => createNativeSandboxEnvironment({ host: host.clients, config }),
    config: () => ({ sessionId: nextId() }),
    failingConfig: () => ({ sessionId: nextId(), baseImage: "nope" }),
    sessionCount: async () => host.provider.sessions.size,
    [Symbol.asyncDispose]: async () => undefined,
  };
};

environmentSuite("native, over a host in memory", () => open(createFakeHost));
environmentSuite("native, over a host in memory on local disk", () =>
  open(() => Object.assign(createFakeHost(), { capabilities: LOCAL_DISK }), {
    storageBackend: "local-disk",
    containerRuntime: "gvisor",
  }),
);

describe("the expectations of a native sandbox", () => {
  it("are zfs and gvisor unless they are given", () => {
    expect(defaultConfig()).toEqual({ storageBackend: "zfs", containerRuntime: "gvisor" });
  });

  it.each([
    ["zfs, where the host has no snapshots", LOCAL_DISK, "snapshots"],
    ["gvisor, where the host routes no tiers", NO_RUNTIME, "tierRouting"],
  ])("refuse %s, before anything is made (D37)", async (_case, capabilities, capability) => {
    const host = Object.assign(createFakeHost(), { capabilities });
    const environment = createNativeSandboxEnvironment({ host: host.clients });
    await expect(environment.create({ sessionId: nextId() })).rejects.toMatchObject({
      reason: "CAPABILITY_NOT_SUPPORTED",
      metadata: { capability },
    });
    expect([host.methods, host.provider.sessions.size]).toEqual([["GetCapabilities"], 0]);
    expect(await environment.state()).toBe("creating");
  });

  it.each([LOCAL_DISK, NO_RUNTIME])(
    "destroy the session again where the host turns out to be another one (D37)",
    async (capabilitiesOnCreate) => {
      const host = Object.assign(createFakeHost(), { capabilitiesOnCreate });
      const environment = createNativeSandboxEnvironment({ host: host.clients });
      expect(await reasonOf(environment.create({ sessionId: nextId() }))).toBe("CAPABILITY_NOT_SUPPORTED");
      expect(host.methods).toContain("CreateSession");
      expect(host.provider.sessions.size).toBe(0);
    },
  );

  it("take a host that has more", async () => {
    const host = createFakeHost();
    const config = { storageBackend: "local-disk", containerRuntime: "none" } as const;
    const environment = createNativeSandboxEnvironment({ host: host.clients, config });
    expect(environment.capabilities()).toMatchObject({ snapshots: false, isolation: "none" });
    await environment.create({ sessionId: nextId() });
    expect(environment.capabilities()).toMatchObject({ snapshots: true, isolation: "gvisor" });
  });
});

describe("the session of a native sandbox", () => {
  it("is one, also where the answer to create got lost", async () => {
    const host = createFakeHost();
    host.lostAnswers.push("CreateSession");
    const environment = createNativeSandboxEnvironment({ host: host.clients, clock: createManualClock() });
    const clock = createManualClock();
    const patient = createNativeSandboxEnvironment({ host: host.clients, clock });
    const created = patient.create({ sessionId: nextId(), labels: { a: "b" } });
    await clock.advance(1000);
    await created;
    expect([...host.provider.sessions.values()].map(({ labels }) => labels)).toEqual([{ a: "b" }]);
    expect(await environment.state()).toBe("creating");
  });

  it("is removed where its creator left before the answer (D37)", async () => {
    const host = createFakeHost();
    const caller = new AbortController();
    const environment = createNativeSandboxEnvironment({
      host: {
        ...host.clients,
        sessions: {
          ...host.clients.sessions,
          createSession: async (request, options) => {
            const answer = await host.clients.sessions.createSession(request, {});
            caller.abort();
            options?.signal?.throwIfAborted();
            return answer;
          },
        },
      },
    });
    expect(await reasonOf(environment.create({ sessionId: nextId() }, { signal: caller.signal }))).toBe("CANCELLED");
    expect(host.provider.sessions.size).toBe(0);
  });

  it("is left alone where somebody else has made it", async () => {
    const host = createFakeHost();
    host.provider.create({ sessionId: "theirs" });
    const environment = createNativeSandboxEnvironment({ host: host.clients });
    expect(await reasonOf(environment.create({ sessionId: "theirs" }))).toBe("SESSION_EXISTS");
    await environment.destroy();
    expect(host.provider.sessions.has("theirs")).toBe(true);
  });

  it("has the environment's reasons for what a host refuses", async () => {
    const host = createFakeHost(createFakeSessions({ maxSessions: 1 }));
    const first = createNativeSandboxEnvironment({ host: host.clients });
    await first.create({ sessionId: "one" });
    const second = createNativeSandboxEnvironment({ host: host.clients });
    expect(await reasonOf(second.create({ sessionId: "two" }))).toBe("SESSION_LIMIT_REACHED");
    host.provider.sessions.clear();
    expect(await reasonOf(first.executeTool(toolRequest("bash", { cmd: "echo hi" })))).toBe("SESSION_NOT_FOUND");
    host.lostAnswers.push("GetCapabilities");
    expect(await reasonOf(second.create({ sessionId: "two" }))).toBe("PROVIDER_UNAVAILABLE");
  });

  it("refuses options that it does not know", async () => {
    const environment = createNativeSandboxEnvironment({ host: createFakeHost().clients });
    const create = (options: Readonly<Record<string, unknown>>) =>
      reasonOf(environment.create({ sessionId: nextId(), options }));
    expect(await create({ colour: "red" })).toBe("INVALID_ARGUMENT");
    expect(await create({ ttlMs: -1 })).toBe("INVALID_ARGUMENT");
    expect(
      await create({ ttlMs: 1000, env: { A: "b" }, resources: { cpus: 1 }, network: { allowOutbound: true } }),
    ).toBe("none");
  });
});

describe("the tools of a native sandbox", () => {
  it("are called by the stream only, and go on at their offset where it breaks", async () => {
    const host = createFakeHost();
    const clock = createManualClock();
    const environment = createNativeSandboxEnvironment({ host: host.clients, clock });
    await environment.create({ sessionId: nextId() });
    host.breakAfter.push(1, 0, 1);
    const told: string[] = [];
    const ended = { settled: false };
    const call = environment.executeTool(toolRequest("bash", { cmd: "echo one; echo two; echo three" }), ({ data }) => {
      told.push(Buffer.from(data).toString());
    });
    void call.finally(() => (ended.settled = true));
    while (!ended.settled) await clock.advance(1000);
    expect((await call).content).toBe("one\ntwo\nthree\n");
    expect(told).toEqual(["one\n", "two\n", "three\n"]);
    expect(host.methods.filter((method) => method.includes("Tool"))).toEqual([
      "ExecuteToolStream",
      "AttachToolCall",
      "AttachToolCall",
      "AttachToolCall",
    ]);
  });
});

describe("an attached native sandbox", () => {
  const attach = async () => {
    const host = createFakeHost();
    host.provider.create({ sessionId: "theirs" });
    const environment = createNativeSandboxEnvironment({ host: host.clients });
    await environment.attachSession("theirs");
    return { host, environment };
  };

  it("runs tools, and leaves everything else to the session's owner", async () => {
    const { host, environment } = await attach();
    expect((await environment.executeTool(toolRequest("bash", { cmd: "echo hi" }))).content).toBe("hi\n");
    expect(await environment.state()).toBe("active");
    const refused = [
      environment.pause(),
      environment.resume(),
      environment.createSnapshot("s"),
      environment.rollback("s"),
      environment.destroy(),
    ];
    for (const call of refused) expect(await reasonOf(call)).toBe("CAPABILITY_NOT_SUPPORTED");
    expect(await reasonOf(environment.create({ sessionId: nextId() }))).toBe("INVALID_STATE");
    expect(environment.capabilities()).toMatchObject({
      lifecycle: false,
      pause: false,
      snapshots: false,
      rollback: false,
    });
    expect(host.provider.sessions.size).toBe(1);
  });

  it("needs a session that is there, on a host as expected", async () => {
    const host = createFakeHost();
    const environment = createNativeSandboxEnvironment({ host: host.clients });
    expect(await reasonOf(environment.attachSession("missing"))).toBe("SESSION_NOT_FOUND");
    host.capabilities = NO_RUNTIME;
    host.provider.create({ sessionId: "there" });
    expect(await reasonOf(environment.attachSession("there"))).toBe("CAPABILITY_NOT_SUPPORTED");
    host.capabilities = ZFS_GVISOR;
    await environment.attachSession("there");
  });
});

describe("the state of a native sandbox", () => {
  it("is failed where the host does not answer within 5 s, or has lost the session", async () => {
    const host = createFakeHost();
    const clock = createManualClock();
    const environment = createNativeSandboxEnvironment({ host: host.clients, clock });
    await environment.create({ sessionId: "one" });
    host.silent.add("GetSession");
    let seen: string | undefined;
    void environment.state().then((state) => (seen = state));
    await clock.advance(4999);
    expect(seen).toBeUndefined();
    await clock.advance(1);
    await clock.advance(0);
    expect(seen).toBe("failed");
    host.silent.clear();
    expect(await environment.state()).toBe("active");
    host.provider.sessions.clear();
    expect(await environment.state()).toBe("failed");
  });

  it("is destroyed after destroy, and the host is not asked", async () => {
    const host = createFakeHost();
    const environment = createNativeSandboxEnvironment({ host: host.clients });
    await environment.create({ sessionId: "one" });
    await environment.destroy();
    host.methods.length = 0;
    expect([await environment.state(), host.methods]).toEqual(["destroyed", []]);
  });
});
