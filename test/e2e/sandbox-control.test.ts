import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { ANY_TENANT, newSessionId } from "@turnbox/core";
import { sandboxControlSuite } from "../../packages/orchestrator/src/control/sandbox-control.suite.ts";
import type { Fleet } from "../../packages/orchestrator/src/fleet/fleet.ts";
import type { CreateSandboxRequest } from "../../packages/orchestrator/src/control/sandbox-control.ts";
import { FLEET_BACKENDS } from "../support/backends.ts";
import { connectTo, createFleetOver, signerOf } from "../support/fleet-hosts.ts";
import { startHost, type TestHost } from "../support/host.ts";
import { makeHome } from "../support/server.ts";

const CREATE: CreateSandboxRequest = {
  idempotencyKey: "",
  labels: {},
  template: "",
  resources: {},
  lifetime: {},
  env: {},
};
const TIMEOUT_MS = 120_000;

let host: TestHost;

beforeAll(async () => {
  host = await startHost();
}, TIMEOUT_MS);

afterAll(async () => {
  await host[Symbol.asyncDispose]();
}, TIMEOUT_MS);

sandboxControlSuite(
  "node on a real host",
  () => {
    const control = connectTo(host);
    return Promise.resolve({
      control,
      absentId: newSessionId(),
      malformedId: "no/such id",
      tenants: ["t1", "t2"],
      names: "unsupported",
      [Symbol.asyncDispose]: () => control[Symbol.asyncDispose](),
    });
  },
  TIMEOUT_MS,
);

describe("a fleet over two real hosts", () => {
  let home: Awaited<ReturnType<typeof makeHome>>;
  const hosts: TestHost[] = [];
  let fleet: Fleet;

  beforeAll(async () => {
    home = await makeHome();
    for (const instanceId of ["a", "b"])
      hosts.push(await startHost({ home: home.path, instanceId, env: FLEET_BACKENDS }));
    const urls = Object.fromEntries(hosts.map(({ url }, index) => [`i-${index + 1}`, url]));
    fleet = createFleetOver(home.path, urls);
    await fleet.registry.refresh({ signal: new AbortController().signal });
  }, 2 * TIMEOUT_MS);

  afterAll(async () => {
    await fleet[Symbol.asyncDispose]();
    for (const one of hosts) await one[Symbol.asyncDispose]();
    await home[Symbol.asyncDispose]();
  }, TIMEOUT_MS);

  sandboxControlSuite(
    "fleet over two real hosts",
    () =>
      Promise.resolve({
        control: fleet.control,
        absentId: `fleet:i-1:${newSessionId()}`,
        malformedId: newSessionId(),
        tenants: ["t1", "t2"],
        names: "supported",
        [Symbol.asyncDispose]: () => Promise.resolve(),
      }),
    TIMEOUT_MS,
  );

  it(
    "is on both of them, and passes over one that is closed",
    async () => {
      const signal = AbortSignal.timeout(TIMEOUT_MS);
      const call = { signal, tenant: "t1" };
      const made = [];
      for (let index = 0; index < 4; index += 1) made.push(await fleet.control.createSandbox(CREATE, call));
      const places = made.map(({ sandboxId }) => sandboxId.split(":")[1]);
      expect(places.filter((place) => place === "i-1")).toHaveLength(2);
      // Closed behind the fleet's back: its own look at the hosts says that both are open.
      await fleet.registry.connection("i-1").setAdmission("closed", { signal, epoch: 1 });
      for (let index = 0; index < 2; index += 1) {
        const next = await fleet.control.createSandbox(CREATE, call);
        expect(next.sandboxId.split(":")[1]).toBe("i-2");
        made.push(next);
      }
      await fleet.registry.connection("i-1").setAdmission("open", { signal, epoch: 1 });
      for (const { sandboxId } of made) await fleet.control.destroySandbox({ sandboxId, idempotencyKey: "" }, call);
    },
    TIMEOUT_MS,
  );
});

describe("a real host that its fleet commands", () => {
  const signal = new AbortController().signal;
  const call = { signal, tenant: "t1" };

  it(
    "keeps out new sandboxes and earlier leaders, also after kill -9",
    async () => {
      await using before = connectTo(host);
      const { sandboxId } = await before.createSandbox(CREATE, call);
      await before.setAdmission("closed", { signal, epoch: 5 });
      expect(await before.report({ signal })).toMatchObject({ admission: "closed" });
      await expect(before.createSandbox(CREATE, call)).rejects.toMatchObject({
        reason: "HOST_CORDONED",
        admitted: "no",
      });

      await host.kill();
      await host.start();

      await using after = connectTo(host);
      await expect(after.createSandbox(CREATE, call)).rejects.toMatchObject({ reason: "HOST_CORDONED" });
      const found = (await after.sessions({ signal })).find(({ sessionId }) => sessionId === sandboxId);
      expect(found).toEqual({ sessionId: sandboxId, tenant: "t1", state: "active" });
      const stale = { signal, epoch: 4 };
      await expect(after.setAdmission("open", stale)).rejects.toMatchObject({ reason: "EPOCH_STALE" });
      const session = { sessionId: sandboxId, tenant: "t1", state: "active" } as const;
      await expect(after.pauseSession(session, stale)).rejects.toMatchObject({ reason: "EPOCH_STALE" });
      expect((await after.getSandbox({ sandboxId }, call)).session.state).toBe("active");
      await after.pauseSession(session, { signal, epoch: 5 });
      await after.pauseSession(session, { signal, epoch: 5 });
      expect((await after.getSandbox({ sandboxId }, call)).session.state).toBe("paused");
      await after.setAdmission("open", { signal, epoch: 6 });
      await after.destroySandbox({ sandboxId, idempotencyKey: "" }, call);
    },
    TIMEOUT_MS,
  );

  it("takes no token of another fleet, though the same key signed it", async () => {
    const grant = { tenant: ANY_TENANT, verbs: ["read", "admin"], lifetimeMs: 60_000 } as const;
    const ask = async (issuer?: string): Promise<number> => {
      const { token } = signerOf(host.home, issuer).sign(grant);
      const response = await fetch(`${host.url}/turnbox.host.v1.HostService/GetStats`, {
        method: "POST",
        headers: { "content-type": "application/json", authorization: `Bearer ${token.reveal()}` },
        body: "{}",
      });
      return response.status;
    };
    expect(await ask("another-fleet")).toBe(401);
    expect(await ask()).toBe(200);
  });
});
