import { describe, expect, it } from "@jest/globals";
import { type Reason, SandboxError } from "@turnbox/core";
import type { FakeControlOptions } from "../../control/fake/fake-sandbox-control.ts";
import type { Store } from "../../store/store.ts";
import type { ControlCall, CreatedSandbox, CreateSandboxRequest } from "../../control/sandbox-control.ts";
import { createFakeFleet, type FakeFleet } from "../fake-fleet.suite.ts";

const CALL: ControlCall = { signal: new AbortController().signal, tenant: "t1" };

const request = (changes: Partial<CreateSandboxRequest> = {}): CreateSandboxRequest => ({
  idempotencyKey: "k1",
  labels: {},
  template: "",
  resources: {},
  lifetime: {},
  env: {},
  ...changes,
});

type Hook = NonNullable<FakeControlOptions["before"]>;

/** Throws the given errors on the first creates, one after another, then lets creates through. */
const failing = (...errors: readonly SandboxError[]): Hook => {
  const left = [...errors];
  return async (operation) => {
    await Promise.resolve();
    const error = operation === "createSandbox" ? left.shift() : undefined;
    if (error !== undefined) throw error;
  };
};
const error = (reason: Reason, admitted?: "no" | "unknown"): SandboxError =>
  new SandboxError(reason, reason.toLowerCase(), admitted === undefined ? {} : { admitted });

/** Lets time pass until the work is done. */
async function eventually<T>(fleet: FakeFleet, work: Promise<T>): Promise<T> {
  const state = { done: false };
  const settled = work.finally(() => {
    state.done = true;
  });
  settled.catch(() => undefined);
  for (let round = 0; round < 100 && !state.done; round += 1) await fleet.clock.advance(500);
  return await settled;
}

describe("createSandbox on a fleet", () => {
  it("goes to the least loaded host and names it in the id", async () => {
    await using fleet = await createFakeFleet();
    fleet.host("i-1").setReport({ sessionCount: 50 });
    await fleet.registry.refresh(CALL);
    const made = await fleet.control.createSandbox(request(), CALL);
    expect(made.sandboxId).toBe(`fleet:i-2:${made.session.sessionId}`);
    expect(made.address).toBe("i-2.test:9100");
  });

  it("says how the sandbox is reached, but not to a caller that repeats the request later", async () => {
    await using fleet = await createFakeFleet();
    const { sandboxId, session, connection } = await fleet.control.createSandbox(request(), CALL);
    const { sessionId } = session;
    expect(connection).toEqual(await fleet.control.connectSandbox({ sandboxId }, CALL));
    expect(connection).toMatchObject({ sandboxId, sessionId });
    const again = await fleet.control.createSandbox(request(), CALL);
    expect([again.sandboxId, again.connection]).toEqual([sandboxId, undefined]);
  });

  it("counts creates in flight, so that two never take the same last slot", async () => {
    await using fleet = await createFakeFleet({
      instances: ["i-1", "i-2"],
      hosts: {
        "i-1": { capabilities: { concurrentSandboxes: 1 } },
        "i-2": { capabilities: { concurrentSandboxes: 1 } },
      },
    });
    for (const id of ["i-1", "i-2"]) fleet.host(id).setReport({ maxSessions: 1 });
    await fleet.registry.refresh(CALL);
    const made = await Promise.all(
      ["a", "b"].map((key) => fleet.control.createSandbox(request({ idempotencyKey: key }), CALL)),
    );
    expect(made.map((one) => one.address).sort()).toEqual(["i-1.test:9100", "i-2.test:9100"]);
    await expect(fleet.control.createSandbox(request({ idempotencyKey: "c" }), CALL)).rejects.toMatchObject({
      reason: "FLEET_EXHAUSTED",
      message: expect.stringContaining("2 full (sessions)"),
      retryAfterMs: expect.any(Number),
    });
  });

  it.each<[string, SandboxError]>([
    ["is full", error("MAX_SESSIONS_REACHED")],
    ["is overloaded", error("OVERLOADED")],
    ["shuts down", error("SHUTTING_DOWN")],
    ["has no such template", error("TEMPLATE_NOT_FOUND")],
    ["could not be connected to", error("HOST_UNREACHABLE", "no")],
  ])("takes the next candidate when a host %s", async (_what, refusal) => {
    await using fleet = await createFakeFleet({ hosts: { "i-1": { before: failing(refusal, refusal) } } });
    const made = await fleet.control.createSandbox(request(), CALL);
    expect(made.sandboxId).toMatch(/^fleet:i-2:/);
    expect(fleet.host("i-1").sandboxIds()).toEqual([]);
    expect(fleet.slots.promised("i-1").sessions).toBe(0);
  });

  it("does not try elsewhere what the caller got wrong", async () => {
    await using fleet = await createFakeFleet({ hosts: { "i-1": { before: failing(error("INVALID_ARGUMENT")) } } });
    await expect(fleet.control.createSandbox(request(), CALL)).rejects.toMatchObject({ reason: "INVALID_ARGUMENT" });
    expect(fleet.host("i-2").createdSessionIds).toEqual([]);
  });

  it("says that the fleet is full when every candidate is", async () => {
    const full = error("MAX_SESSIONS_REACHED");
    await using fleet = await createFakeFleet({
      hosts: {
        "i-1": { before: failing(...Array<SandboxError>(9).fill(full)) },
        "i-2": { before: failing(...Array<SandboxError>(9).fill(full)) },
      },
    });
    await expect(fleet.control.createSandbox(request(), CALL)).rejects.toMatchObject({ reason: "FLEET_EXHAUSTED" });
  });

  it("asks again when a host that starts again has just removed what a crash had cut off", async () => {
    await using fleet = await createFakeFleet({ hosts: { "i-1": { before: failing(error("SESSION_EXISTS", "no")) } } });
    const made = await eventually(fleet, fleet.control.createSandbox(request(), CALL));
    expect(made.sandboxId).toMatch(/^fleet:i-1:/);
    expect(fleet.host("i-1").sandboxIds()).toHaveLength(1);
  });

  it("asks the same host again under the same id when the answer was lost, and makes one sandbox", async () => {
    const lost = failing(error("HOST_UNREACHABLE", "unknown"), error("HOST_UNREACHABLE", "unknown"));
    await using fleet = await createFakeFleet({ hosts: { "i-1": { after: lost } } });
    const made = await eventually(fleet, fleet.control.createSandbox(request(), CALL));
    expect(made.sandboxId).toMatch(/^fleet:i-1:/);
    expect(fleet.host("i-1").sandboxIds()).toEqual([made.session.sessionId]);
    expect(new Set(fleet.host("i-1").createdSessionIds)).toEqual(new Set([made.session.sessionId]));
    expect(fleet.host("i-2").createdSessionIds).toEqual([]);
  });

  it("does not take a closed door for an answer to a create that may have begun", async () => {
    let creates = 0;
    const before: Hook = async (operation) => {
      await Promise.resolve();
      if (operation === "createSandbox" && (creates === 1 || creates === 2)) {
        creates += 1;
        throw error(creates === 2 ? "SHUTTING_DOWN" : "HOST_UNREACHABLE", "no");
      }
    };
    const after: Hook = async (operation) => {
      await Promise.resolve();
      if (operation === "createSandbox" && creates === 0) {
        creates = 1;
        throw error("HOST_UNREACHABLE", "unknown");
      }
    };
    await using fleet = await createFakeFleet({ hosts: { "i-1": { before, after } } });
    const made = await eventually(fleet, fleet.control.createSandbox(request(), CALL));
    expect(made.sandboxId).toMatch(/^fleet:i-1:/);
    expect(fleet.host("i-2").createdSessionIds).toEqual([]);
  });

  it("says that the outcome is unknown when the host stays silent, and takes it up again under the same key", async () => {
    let silent = true;
    const after: Hook = async () => {
      await Promise.resolve();
      if (silent) throw error("HOST_UNREACHABLE", "unknown");
    };
    await using fleet = await createFakeFleet({ hosts: { "i-1": { after } } });
    await expect(eventually(fleet, fleet.control.createSandbox(request({ name: "web" }), CALL))).rejects.toMatchObject({
      reason: "HOST_UNREACHABLE",
      admitted: "unknown",
    });
    expect(fleet.host("i-2").createdSessionIds).toEqual([]);
    silent = false;
    const control = await fleet.restart();
    const made = await control.createSandbox(request({ name: "web" }), CALL);
    expect(fleet.host("i-1").sandboxIds()).toEqual([made.session.sessionId]);
    expect(fleet.host("i-2").sandboxIds()).toEqual([]);
  });

  it("remembers keys and names over a restart", async () => {
    await using fleet = await createFakeFleet();
    const made = await fleet.control.createSandbox(request({ name: "web" }), CALL);
    const control = await fleet.restart();
    expect((await control.createSandbox(request({ name: "web" }), CALL)).sandboxId).toBe(made.sandboxId);
    await expect(control.createSandbox(request({ name: "web", idempotencyKey: "k2" }), CALL)).rejects.toMatchObject({
      reason: "SANDBOX_EXISTS",
      metadata: { sandboxId: made.sandboxId },
    });
  });

  it("makes two round trips to the store, and one if the key is done", async () => {
    const operations: string[] = [];
    const counted = (store: Store): Store =>
      new Proxy(store, {
        get: (target, name) => {
          const value: unknown = Reflect.get(target, name, target);
          if (typeof value !== "function") return value;
          return (...args: unknown[]): unknown => {
            operations.push(String(name));
            return Reflect.apply(value, target, args);
          };
        },
      });
    await using fleet = await createFakeFleet({ aroundStore: counted });
    const operationsOf = async (changes: Partial<CreateSandboxRequest>): Promise<readonly string[]> => {
      operations.length = 0;
      await fleet.control.createSandbox(request(changes), CALL);
      return [...operations];
    };
    const trips = ["beginCreate", "finishCreate"];
    expect(await operationsOf({ name: "web" })).toEqual(trips);
    expect(await operationsOf({ name: "web" })).toEqual(["beginCreate"]);
    expect(await operationsOf({ idempotencyKey: "" })).toEqual(trips);
  });

  it("takes a request whose labels come in another order for the same", async () => {
    await using fleet = await createFakeFleet();
    const first = await fleet.control.createSandbox(request({ labels: { a: "1", b: "2" } }), CALL);
    const second = await fleet.control.createSandbox(request({ labels: { b: "2", a: "1" } }), CALL);
    expect(second.sandboxId).toBe(first.sandboxId);
  });

  it("D22: does not keep a failure, and gives key and name free", async () => {
    await using fleet = await createFakeFleet({
      instances: ["i-1"],
      hosts: { "i-1": { before: failing(error("INVALID_ARGUMENT")) } },
    });
    await expect(fleet.control.createSandbox(request({ name: "web" }), CALL)).rejects.toThrow();
    expect((await fleet.control.createSandbox(request({ name: "web", labels: { other: "1" } }), CALL)).name).toBe(
      "web",
    );
  });

  it("D22: lets a second caller join, and goes on when the first one leaves", async () => {
    const gate = Promise.withResolvers<undefined>();
    const before: Hook = async (operation) => {
      if (operation === "createSandbox") await gate.promise;
    };
    await using fleet = await createFakeFleet({ instances: ["i-1"], hosts: { "i-1": { before } } });
    const leaving = new AbortController();
    const first = fleet.control.createSandbox(request(), { ...CALL, signal: leaving.signal });
    const second = fleet.control.createSandbox(request(), CALL);
    leaving.abort(new Error("gone home"));
    await expect(first).rejects.toThrow("gone home");
    gate.resolve(undefined);
    const made = await second;
    expect(fleet.host("i-1").sandboxIds()).toEqual([made.session.sessionId]);
  });

  describe("for which no caller waits when it is made", () => {
    /** Creates on one host and leaves before the host is through, then lets it go on. */
    async function abandon(
      changes: Partial<CreateSandboxRequest>,
      hooks: {
        readonly onLeft?: (fleet: FakeFleet) => Promise<void>;
        readonly onDestroy?: (fleet: FakeFleet) => void;
      } = {},
    ) {
      const gate = Promise.withResolvers<undefined>();
      const asked = Promise.withResolvers<undefined>();
      const before: Hook = async (operation) => {
        if (operation === "destroySandbox") hooks.onDestroy?.(fleet);
        if (operation !== "createSandbox") return;
        asked.resolve(undefined);
        await gate.promise;
      };
      const fleet: FakeFleet = await createFakeFleet({ instances: ["i-1"], hosts: { "i-1": { before } } });
      const leaving = new AbortController();
      const create = fleet.control.createSandbox(request(changes), { ...CALL, signal: leaving.signal });
      await asked.promise;
      leaving.abort(new Error("gone"));
      await expect(create).rejects.toThrow("gone");
      const left = hooks.onLeft?.(fleet);
      gate.resolve(undefined);
      await left;
      return fleet;
    }
    const rows = async ({ store }: FakeFleet) => await store.listSandboxes({ tenant: "t1", after: "", limit: 9 }, CALL);

    it.each<[string, Partial<CreateSandboxRequest>]>([
      ["a create without a key", { idempotencyKey: "", name: "web" }],
      ["a create that says so", { ifAbandoned: "discard", name: "web" }],
    ])("leaves nothing of %s", async (_what, changes) => {
      await using fleet = await abandon(changes);
      for (let round = 0; round < 100 && (await rows(fleet)).length > 0; round += 1) await fleet.clock.advance(0);
      expect([fleet.host("i-1").sandboxIds(), await rows(fleet)]).toEqual([[], []]);
      const again = await fleet.control.createSandbox(request({ ...changes, idempotencyKey: "k2" }), CALL);
      expect(again.name).toBe("web");
    });

    it("keeps the sandbox of a create with a key, which finds it", async () => {
      await using fleet = await abandon({});
      const { session } = await fleet.control.createSandbox(request(), CALL);
      expect(fleet.host("i-1").createdSessionIds).toEqual([session.sessionId]);
      expect(fleet.host("i-1").sandboxIds()).toEqual([session.sessionId]);
    });

    it("hands the sandbox to a caller that comes with the key before it is made", async () => {
      const changes = { ifAbandoned: "discard" } as const;
      const joined: string[] = [];
      await using fleet = await abandon(changes, {
        onLeft: async ({ control }) => {
          joined.push((await control.createSandbox(request(changes), CALL)).session.sessionId);
        },
      });
      expect(fleet.host("i-1").sandboxIds()).toEqual(joined);
    });

    it("makes another one for a caller that comes with the key while it is destroyed", async () => {
      const changes = { ifAbandoned: "discard" } as const;
      const later = Promise.withResolvers<CreatedSandbox>();
      const comeBack = (fleet: FakeFleet): void => {
        fleet.control.createSandbox(request(changes), CALL).then(later.resolve, later.reject);
      };
      await using fleet = await abandon(changes, { onDestroy: comeBack });
      const { session } = await later.promise;
      expect(fleet.host("i-1").sandboxIds()).toEqual([session.sessionId]);
      expect(fleet.host("i-1").createdSessionIds).toHaveLength(2);
    });
  });

  it("gives a name free that belongs to a sandbox its host no longer has", async () => {
    await using fleet = await createFakeFleet({ instances: ["i-1"] });
    const made = await fleet.control.createSandbox(request({ name: "web" }), CALL);
    await fleet.host("i-1").destroySandbox({ sandboxId: made.session.sessionId, idempotencyKey: "" }, CALL);
    const again = await fleet.control.createSandbox(request({ name: "web", idempotencyKey: "k2" }), CALL);
    expect(again.sandboxId).not.toBe(made.sandboxId);
  });

  it("does not give a name free because a host is silent", async () => {
    let silent = false;
    const before: Hook = async () => {
      await Promise.resolve();
      if (silent) throw error("HOST_UNREACHABLE", "no");
    };
    await using fleet = await createFakeFleet({ instances: ["i-1", "i-2"], hosts: { "i-1": { before } } });
    await fleet.control.createSandbox(request({ name: "web" }), CALL);
    silent = true;
    await expect(
      fleet.control.createSandbox(request({ name: "web", idempotencyKey: "k2" }), CALL),
    ).rejects.toMatchObject({
      reason: "SANDBOX_EXISTS",
    });
  });
});
