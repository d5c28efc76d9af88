import { describe, expect, it } from "@jest/globals";
import type { Client } from "@connectrpc/connect";
import { createManualClock } from "@turnbox/core/testing";
import {
  DrainReason,
  DrainSessions,
  FleetEventKind,
  type FleetService,
  InstanceState,
} from "@turnbox/protocol/turnbox/control/v1/fleet_pb";
import { createServer, instance, refusal } from "./server.suite.ts";
import { KEEPALIVE_MS } from "./watch-fleet.ts";

const INSTANCES = [
  instance("a", { sessionCount: 2, state: "active", image: "img-1" }),
  instance("b", { cordoned: true, state: "draining", drainReason: "scale_down" }),
  instance("c", { url: undefined, state: "provisioning" }),
];

describe("FleetService", () => {
  it("tells the fleet in numbers", async () => {
    const server = createServer(INSTANCES);
    server.fleet.waitingCreates = 7;
    expect(await server.fleets().getFleetStatus({})).toMatchObject({
      fleetId: "f1",
      version: "1.2.3",
      sessionCount: 2,
      waitingCreates: 7,
      instances: { active: 1, draining: 1, provisioning: 1 },
    });
  });

  it("lists instances in pages, with why each is being emptied", async () => {
    const client = createServer(INSTANCES).fleets();
    const first = await client.listInstances({ page: { pageSize: 2 } });
    expect(first.instances).toMatchObject([
      { instanceId: "a", state: InstanceState.ACTIVE, url: "http://a:9100", sessionCount: 2, image: "img-1" },
      { instanceId: "b", state: InstanceState.DRAINING, cordoned: true, drainReason: DrainReason.SCALE_DOWN },
    ]);
    const second = await client.listInstances({ page: { pageSize: 2, pageToken: first.page?.nextPageToken ?? "" } });
    expect(second.instances.map((one) => [one.instanceId, one.url])).toEqual([["c", ""]]);
    expect(await refusal(client.listInstances({ page: { pageToken: "zzz" } }))).toMatchObject({
      field: "page.page_token",
    });
  });

  it("cordons and uncordons, as often as it is asked to", async () => {
    const client = createServer(INSTANCES).fleets();
    for (const idempotencyKey of ["k1", "k1", ""]) {
      const { instance: cordoned } = await client.cordonInstance({ instanceId: "a", idempotencyKey });
      expect(cordoned).toMatchObject({ instanceId: "a", cordoned: true });
    }
    expect((await client.uncordonInstance({ instanceId: "a" })).instance?.cordoned).toBe(false);
  });

  it("drains with the fleet's time and keeps sandboxes, unless told otherwise", async () => {
    const server = createServer(INSTANCES);
    const client = server.fleets();
    const { instance: draining } = await client.drainInstance({ instanceId: "a" });
    expect(draining).toMatchObject({ state: InstanceState.DRAINING, drainReason: DrainReason.OPERATOR });
    await client.drainInstance({ instanceId: "b", timeout: { seconds: 90n }, sessions: DrainSessions.DISCARD });
    await client.drainInstance({ instanceId: "c", timeout: {}, sessions: DrainSessions.KEEP });
    expect(server.fleet.asked.drains).toEqual([
      { instanceId: "a", timeoutMs: undefined, sessions: "keep" },
      { instanceId: "b", timeoutMs: 90_000, sessions: "discard" },
      { instanceId: "c", timeoutMs: 0, sessions: "keep" },
    ]);
  });

  it("refreshes and says what is replaced and what is skipped", async () => {
    const server = createServer(INSTANCES);
    const answer = await server.fleets().refreshInstances({ image: "ami-2" });
    expect(answer).toMatchObject({ replacing: ["a"], skipped: ["b"] });
    expect(server.fleet.asked.images).toEqual(["ami-2"]);
  });

  it.each<[string, (client: Client<typeof FleetService>) => Promise<unknown>]>([
    ["instance_id", (client) => client.cordonInstance({ instanceId: "" })],
    ["instance_id", (client) => client.uncordonInstance({ instanceId: "a:b" })],
    ["instance_id", (client) => client.drainInstance({ instanceId: "../etc" })],
    ["idempotency_key", (client) => client.cordonInstance({ instanceId: "a", idempotencyKey: "k".repeat(257) })],
    ["idempotency_key", (client) => client.refreshInstances({ idempotencyKey: "k".repeat(257) })],
    ["timeout", (client) => client.drainInstance({ instanceId: "a", timeout: { seconds: -1n } })],
    ["timeout", (client) => client.drainInstance({ instanceId: "a", timeout: { seconds: 1n << 40n } })],
    ["sessions", (client) => client.drainInstance({ instanceId: "a", sessions: 9 as unknown as DrainSessions })],
    ["image", (client) => client.refreshInstances({ image: "two words" })],
  ])("refuses a wrong %s by its name", async (field, ask) => {
    const server = createServer(INSTANCES);
    expect(await refusal(ask(server.fleets()))).toMatchObject({ reason: "INVALID_ARGUMENT", field });
    expect(server.fleet.asked).toEqual({ drains: [], images: [] });
  });

  it("knows no instance that is not there", async () => {
    const client = createServer(INSTANCES).fleets();
    expect(await refusal(client.cordonInstance({ instanceId: "zz" }))).toMatchObject({ reason: "INSTANCE_NOT_FOUND" });
  });

  it("is not for tenants, and changes need more than reading", async () => {
    const server = createServer(INSTANCES);
    const denied = { reason: "PERMISSION_DENIED" };
    expect(await refusal(server.fleets(server.tokenOf("t1")).listInstances({}))).toMatchObject(denied);
    const reader = server.fleets(server.tokenOf("*", { verbs: ["read"] }));
    expect((await reader.listInstances({})).instances).toHaveLength(3);
    expect(await refusal(reader.drainInstance({ instanceId: "a" }))).toMatchObject(denied);
  });
});

describe("WatchFleet", () => {
  async function watching() {
    const clock = createManualClock();
    const server = createServer(INSTANCES, clock);
    const end = new AbortController();
    const events = server.fleets().watchFleet({}, { signal: end.signal })[Symbol.asyncIterator]();
    const next = async (): Promise<readonly [string, string]> => {
      const event = await events.next();
      if (event.done === true) throw new Error("the watch has ended");
      return [FleetEventKind[event.value.kind], event.value.instance?.instanceId ?? ""];
    };
    return { server, clock, next, end };
  }

  it("shows what exists, then what changes, goes and was missed", async () => {
    const { server, next, end } = await watching();
    expect([await next(), await next(), await next()]).toEqual([
      ["EXISTING", "a"],
      ["EXISTING", "b"],
      ["EXISTING", "c"],
    ]);
    server.fleet.tell({ kind: "changed", instance: instance("c") });
    server.fleet.tell({ kind: "removed", instance: instance("b") });
    server.fleet.tell({ kind: "overflow" });
    expect([await next(), await next(), await next()]).toEqual([
      ["CHANGED", "c"],
      ["REMOVED", "b"],
      ["OVERFLOW", ""],
    ]);
    end.abort();
  });

  it("misses nothing that happens while the first part is read", async () => {
    const { server, next, end } = await watching();
    await next();
    server.fleet.tell({ kind: "changed", instance: instance("d") });
    expect([await next(), await next(), await next()].at(-1)).toEqual(["CHANGED", "d"]);
    end.abort();
  });

  it("says that it lives when nothing happens, and lets go of the fleet with its reader", async () => {
    const { server, clock, next, end } = await watching();
    for (const _ of INSTANCES) await next();
    for (let count = 0; count < 2; count += 1) {
      const waiting = next();
      await clock.advance(KEEPALIVE_MS - 1);
      await clock.advance(1);
      expect(await waiting).toEqual(["KEEPALIVE", ""]);
    }
    end.abort();
    const deadlineMs = performance.now() + 5000;
    while (server.fleet.listeners > 0) {
      if (performance.now() > deadlineMs) throw new Error("the watch still listens");
      await new Promise((resolve) => setImmediate(resolve));
    }
  });
});
