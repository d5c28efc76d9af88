import { describe, expect, it } from "@jest/globals";
import { aroundMethods, SandboxError } from "@turnbox/core";
import type { ControlCall, CreateSandboxRequest } from "../../control/sandbox-control.ts";
import type { Store } from "../../store/store.ts";
import { createFakeFleet, type FakeFleet, type FakeFleetOptions } from "../fake-fleet.suite.ts";

const CALL: ControlCall = { signal: new AbortController().signal, tenant: "t1" };
const REQUEST: CreateSandboxRequest = {
  idempotencyKey: "k1",
  name: "web",
  labels: {},
  template: "",
  resources: {},
  lifetime: {},
  env: {},
};

type Step = "beginCreate" | "placeSandbox" | "finishCreate";

/** Failures of the store that are still to come, by step: before the work, or after it, when only its answer is lost. */
class StoreFailures {
  readonly #left: { readonly step: Step; readonly when: "before" | "after" }[] = [];

  add(step: Step, when: "before" | "after"): void {
    this.#left.push({ step, when });
  }

  readonly around = (store: Store): Store =>
    aroundMethods(store, ["beginCreate", "placeSandbox", "finishCreate"], async (step, work) => {
      const at = this.#left.findIndex((one) => one.step === step);
      const [failure] = at === -1 ? [] : this.#left.splice(at, 1);
      if (failure === undefined) return await work();
      if (failure.when === "after") await work();
      const admitted = failure.when === "after" ? "unknown" : "no";
      throw new SandboxError("STORE_UNAVAILABLE", "the store did not answer", { admitted });
    });
}

const create = (fleet: FakeFleet, changes: Partial<CreateSandboxRequest> = {}) =>
  fleet.control.createSandbox({ ...REQUEST, ...changes }, CALL);

/** A first candidate that refuses one create, so that the create goes on to the next one. */
const refusing = (): NonNullable<FakeFleetOptions["hosts"]> => {
  const refusals = [new SandboxError("MAX_SESSIONS_REACHED", "full")];
  const before = async (operation: string): Promise<void> => {
    await Promise.resolve();
    const refusal = operation === "createSandbox" ? refusals.pop() : undefined;
    if (refusal !== undefined) throw refusal;
  };
  return { "i-1": { before } };
};

const made = (fleet: FakeFleet): readonly string[] =>
  fleet.registry.instanceIds().flatMap((instanceId) => fleet.host(instanceId).sandboxIds());

describe("a create whose store fails", () => {
  it.each<[Step, "before" | "after"]>([
    ["beginCreate", "after"],
    ["placeSandbox", "after"],
    ["finishCreate", "before"],
    ["finishCreate", "after"],
  ])("makes one sandbox under its key when %s fails %s the work", async (step, when) => {
    const failures = new StoreFailures();
    await using fleet = await createFakeFleet({ hosts: refusing(), aroundStore: failures.around });
    failures.add(step, when);
    await expect(create(fleet)).rejects.toMatchObject({ reason: "STORE_UNAVAILABLE", admitted: "unknown" });
    const { session } = await create(fleet);
    expect(made(fleet)).toEqual([session.sessionId]);
    expect(await fleet.store.getSandbox(session.sessionId, CALL)).toMatchObject({ phase: "created" });
  });

  it.each<Step>(["beginCreate", "placeSandbox"])(
    "takes back its key, its name and its slot if %s fails and no host has it",
    async (step) => {
      const failures = new StoreFailures();
      await using fleet = await createFakeFleet({ hosts: refusing(), aroundStore: failures.around });
      failures.add(step, "before");
      await expect(create(fleet)).rejects.toMatchObject({ reason: "STORE_UNAVAILABLE", admitted: "no" });
      expect(made(fleet)).toEqual([]);
      expect([fleet.slots.promised("i-1").sessions, fleet.slots.promised("i-2").sessions]).toEqual([0, 0]);
      await create(fleet, { labels: { another: "request" } });
    },
  );

  it("says that the outcome is unknown if an earlier call under the key may have had it made", async () => {
    const failures = new StoreFailures();
    await using fleet = await createFakeFleet({ hosts: refusing(), aroundStore: failures.around });
    failures.add("beginCreate", "after");
    await expect(create(fleet)).rejects.toMatchObject({ admitted: "unknown" });
    failures.add("placeSandbox", "before");
    await expect(create(fleet)).rejects.toMatchObject({ reason: "STORE_UNAVAILABLE", admitted: "unknown" });
    const { session } = await create(fleet);
    expect(made(fleet)).toEqual([session.sessionId]);
  });
});

describe("a create that another replica goes on with", () => {
  it("ends what it made itself and says so to its caller", async () => {
    const moved: string[] = [];
    await using fleet = await createFakeFleet({
      hosts: {
        "i-1": {
          after: async (operation) => {
            const sessionId = fleet.host("i-1").createdSessionIds[0] ?? "";
            if (operation !== "createSandbox" || moved.includes(sessionId)) return;
            moved.push(sessionId);
            await fleet.store.placeSandbox({ sessionId, instanceId: "i-2", from: "i-1" }, CALL);
          },
        },
      },
    });
    await expect(create(fleet)).rejects.toMatchObject({ reason: "OVERLOADED", admitted: "unknown" });
    expect(made(fleet)).toEqual([]);
    const { sandboxId, session } = await create(fleet);
    expect([sandboxId, [session.sessionId]]).toEqual([`fleet:i-2:${session.sessionId}`, moved]);
  });

  it("does not place it where another replica has placed it elsewhere", async () => {
    const failures = new StoreFailures();
    let steal: ((store: Store) => Promise<void>) | undefined = async (store) => {
      const [row] = await store.listSandboxes({ tenant: "t1", after: "", limit: 1 }, CALL);
      if (row !== undefined) await store.placeSandbox({ ...row, instanceId: "i-3", from: "i-1" }, CALL);
    };
    await using fleet = await createFakeFleet({
      instances: ["i-1", "i-2", "i-3"],
      hosts: refusing(),
      aroundStore: (store) =>
        aroundMethods(failures.around(store), ["placeSandbox"], async (_step, work) => {
          await steal?.(store);
          steal = undefined;
          return await work();
        }),
    });
    await expect(create(fleet)).rejects.toMatchObject({ reason: "OVERLOADED", admitted: "unknown" });
    expect(made(fleet)).toEqual([]);
    expect(await create(fleet)).toMatchObject({ sandboxId: expect.stringMatching(/^fleet:i-3:/) });
  });
});
