import { describe, expect, it } from "@jest/globals";
import { invalidArgument, SandboxError } from "@turnbox/core";
import type { ControlCall, CreateSandboxRequest } from "../control/sandbox-control.ts";
import { createFakeFleet } from "./fake-fleet.suite.ts";

const CALL: ControlCall = { signal: new AbortController().signal, tenant: "t1" };
const REQUEST: CreateSandboxRequest = {
  idempotencyKey: "",
  labels: {},
  template: "",
  resources: {},
  lifetime: {},
  env: {},
};
const ALL = { labels: {}, pageSize: 100, pageToken: "" };

const silent = async (): Promise<void> => {
  await Promise.resolve();
  throw new SandboxError("HOST_UNREACHABLE", "no route", { admitted: "no" });
};

describe("a fleet", () => {
  it("routes by the id alone, also for an orchestrator that knows nothing", async () => {
    await using fleet = await createFakeFleet();
    const made = await fleet.control.createSandbox(REQUEST, CALL);
    await fleet.store.deleteSandbox(made.session.sessionId, CALL);
    const control = await fleet.restart();
    expect((await control.getSandbox({ sandboxId: made.sandboxId }, CALL)).session.state).toBe("active");
    await control.destroySandbox({ sandboxId: made.sandboxId, idempotencyKey: "" }, CALL);
    expect(fleet.host("i-1").sandboxIds()).toEqual([]);
  });

  it("does not find a sandbox of an instance that it does not have", async () => {
    await using fleet = await createFakeFleet();
    await expect(fleet.control.getSandbox({ sandboxId: "fleet:i-9:s1" }, CALL)).rejects.toMatchObject({
      reason: "SANDBOX_NOT_FOUND",
    });
  });

  it("says that a host cannot be reached while its machine is down, and that nothing happened", async () => {
    await using fleet = await createFakeFleet();
    const made = await fleet.control.createSandbox(REQUEST, CALL);
    fleet.provisioner.change("i-1", { state: "pending", url: undefined, problem: "it ended" });
    await fleet.registry.sync(CALL);
    await expect(fleet.control.getSandbox({ sandboxId: made.sandboxId }, CALL)).rejects.toMatchObject({
      reason: "HOST_UNREACHABLE",
      admitted: "no",
    });
  });

  it("lists over all hosts in pages, and names those that did not answer", async () => {
    await using fleet = await createFakeFleet({
      instances: ["i-1", "i-2", "i-3"],
      hosts: { "i-2": { before: silent } },
    });
    for (const instanceId of ["i-1", "i-3"]) {
      for (let index = 0; index < 3; index += 1) await fleet.host(instanceId).createSandbox(REQUEST, CALL);
    }
    const listed: string[] = [];
    const unreachable = new Set<string>();
    let pageToken = "";
    do {
      const page = await fleet.control.listSandboxes({ ...ALL, pageSize: 2, pageToken }, CALL);
      listed.push(...page.sandboxes.map((one) => one.sandboxId));
      for (const instanceId of page.unreachableInstances) unreachable.add(instanceId);
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(new Set(listed).size).toBe(6);
    expect(listed).toHaveLength(6);
    expect([...unreachable]).toEqual(["i-2"]);
  });

  it("refuses a page token that it did not give", async () => {
    await using fleet = await createFakeFleet();
    await expect(fleet.control.listSandboxes({ ...ALL, pageToken: "zzz" }, CALL)).rejects.toMatchObject({
      reason: "INVALID_ARGUMENT",
      metadata: { field: "page.page_token" },
    });
  });

  it("has the capabilities that every host has (D24)", async () => {
    await using fleet = await createFakeFleet({
      hosts: {
        "i-1": { capabilities: { concurrentSandboxes: 3, maxSandboxDurationMs: 0 } },
        "i-2": {
          capabilities: {
            snapshots: false,
            fork: false,
            concurrentSandboxes: 4,
            maxSandboxDurationMs: 5000,
            storage: "local-disk",
          },
        },
      },
    });
    expect(await fleet.control.capabilities(CALL)).toMatchObject({
      snapshots: false,
      rollback: true,
      fork: false,
      concurrentSandboxes: 7,
      maxSandboxDurationMs: 5000,
      storage: "fake+local-disk",
    });
  });

  it("brings a template to every host and lists each version once", async () => {
    await using fleet = await createFakeFleet();
    async function* archive() {
      for (const text of ["one", "two"]) yield await Promise.resolve(Buffer.from(text));
    }
    const imported = await fleet.control.importTemplate({ idempotencyKey: "", name: "py", archive: archive() }, CALL);
    expect(imported).toMatchObject({ hosts: 2, template: { name: "py", sizeBytes: 6 } });
    expect(fleet.host("i-2").templates).toEqual([imported.template]);
    expect(await fleet.control.listTemplates(CALL)).toEqual([imported.template]);
  });

  it("fails an import that one host refused, and ends", async () => {
    await using fleet = await createFakeFleet({ hosts: { "i-2": { before: silent } } });
    async function* archive() {
      for (let index = 0; index < 50; index += 1) yield await Promise.resolve(Buffer.alloc(10));
    }
    await expect(
      fleet.control.importTemplate({ idempotencyKey: "", name: "py", archive: archive() }, CALL),
    ).rejects.toMatchObject({ reason: "HOST_UNREACHABLE" });
  });

  it("fails an import for the reason that its archive broke off for", async () => {
    await using fleet = await createFakeFleet();
    async function* archive() {
      yield await Promise.resolve(Buffer.alloc(10));
      throw invalidArgument("data", "does not decode");
    }
    await expect(
      fleet.control.importTemplate({ idempotencyKey: "", name: "py", archive: archive() }, CALL),
    ).rejects.toMatchObject({ reason: "INVALID_ARGUMENT", metadata: { field: "data" } });
  });

  it("answers the same destroy again from the store, and takes a lost one for done when the sandbox is gone", async () => {
    let losing = false;
    const after = async (operation: string): Promise<void> => {
      await Promise.resolve();
      if (losing && operation === "destroySandbox") throw new SandboxError("HOST_UNREACHABLE", "cut off");
    };
    await using fleet = await createFakeFleet({ instances: ["i-1"], hosts: { "i-1": { after } } });
    const first = await fleet.control.createSandbox(REQUEST, CALL);
    const second = await fleet.control.createSandbox(REQUEST, CALL);
    const destroy = (sandboxId: string, idempotencyKey: string): Promise<void> =>
      fleet.control.destroySandbox({ sandboxId, idempotencyKey }, CALL);
    await destroy(first.sandboxId, "d1");
    await destroy(first.sandboxId, "d1");
    await expect(destroy(second.sandboxId, "d1")).rejects.toMatchObject({ reason: "IDEMPOTENCY_CONFLICT" });
    losing = true;
    await expect(destroy(second.sandboxId, "d2")).rejects.toMatchObject({ admitted: "unknown" });
    losing = false;
    await destroy(second.sandboxId, "d2");
    await expect(destroy("fleet:i-1:never", "d3")).rejects.toMatchObject({ reason: "SANDBOX_NOT_FOUND" });
  });

  it("D27: a destroy that fails keeps the sandbox counted and in the index", async () => {
    let broken = false;
    const before = async (operation: string): Promise<void> => {
      if (broken && operation === "destroySandbox") await silent();
    };
    await using fleet = await createFakeFleet({ instances: ["i-1"], hosts: { "i-1": { before } } });
    const made = await fleet.control.createSandbox({ ...REQUEST, name: "web" }, CALL);
    broken = true;
    await expect(
      fleet.control.destroySandbox({ sandboxId: made.sandboxId, idempotencyKey: "" }, CALL),
    ).rejects.toMatchObject({ reason: "HOST_UNREACHABLE" });
    expect(fleet.slots.promised("i-1").sessions).toBe(1);
    expect((await fleet.control.getSandbox({ sandboxId: made.sandboxId }, CALL)).name).toBe("web");
  });

  it("forks on the parent's host alone, whose answers count against it until its next report", async () => {
    await using fleet = await createFakeFleet({ hosts: { "i-1": { capabilities: { concurrentSandboxes: 3 } } } });
    const { sandboxId: sessionId } = await fleet
      .host("i-1")
      .createSandbox({ ...REQUEST, resources: { cpus: 2 }, quotaBytes: 7 }, CALL);
    const request = { sandboxId: `fleet:i-1:${sessionId}`, idempotencyKey: "", snapshotId: "", count: 3, labels: {} };
    const results = await fleet.control.forkSandbox(request, CALL);
    expect(results).toMatchObject([
      { kind: "forked", sandbox: { sandboxId: expect.stringMatching(/^fleet:i-1:[a-z0-9]+$/) as unknown } },
      { kind: "forked" },
      { kind: "failed", error: { reason: "MAX_SESSIONS_REACHED" } },
    ]);
    expect(fleet.host("i-2").sandboxIds()).toEqual([]);
    expect(fleet.slots.promised("i-1")).toEqual({ sessions: 2, cpus: 4, memoryBytes: 0, diskBytes: 14 });
    await fleet.clock.advance(1);
    await fleet.registry.refresh(CALL);
    expect(fleet.slots.promised("i-1").sessions).toBe(0);
  });

  it("holds slots while a fork runs, and gives them back if it fails", async () => {
    let during = 0;
    const before = async (operation: string): Promise<void> => {
      if (operation !== "forkSandbox") return;
      during = fleet.slots.promised("i-1").sessions;
      await silent();
    };
    await using fleet = await createFakeFleet({ instances: ["i-1"], hosts: { "i-1": { before } } });
    const { sandboxId } = await fleet.host("i-1").createSandbox(REQUEST, CALL);
    const request = { sandboxId: `fleet:i-1:${sandboxId}`, idempotencyKey: "", snapshotId: "", count: 5, labels: {} };
    await expect(fleet.control.forkSandbox(request, CALL)).rejects.toMatchObject({ reason: "HOST_UNREACHABLE" });
    expect(during).toBe(5);
    expect(fleet.slots.promised("i-1").sessions).toBe(0);
  });

  it("gives addresses of processes that mean the instance and not the caller's own machine (D26)", async () => {
    await using fleet = await createFakeFleet({ instances: ["i-1"] });
    const { sandboxId } = await fleet.control.createSandbox(REQUEST, CALL);
    const launch = { sandboxId, idempotencyKey: "", binary: "web", args: [], env: {}, exposePort: 8080 };
    const { processId, address } = await fleet.control.launchProcess(launch, CALL);
    expect(address).toBe("i-1.test:8080");
    expect(await fleet.control.getProcessStatus({ sandboxId, processId }, CALL)).toMatchObject({ address });
  });
});
