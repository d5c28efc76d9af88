import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { poll, SandboxError, systemClock } from "@turnbox/core";
import { createFakeFleet, type FakeFleet, type FakeFleetOptions } from "../fake-fleet.suite.ts";
import { fleetTags } from "../registry/fleet-tags.ts";
import { TemplateArchives } from "./template-archives.ts";

const CALL = { signal: new AbortController().signal, tenant: "t1" };
const REQUEST = { idempotencyKey: "", labels: {}, resources: {}, lifetime: {}, env: {} };

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "turnbox-sync-"));
});
afterEach(() => {
  rmSync(home, { recursive: true });
});

const archives = (): TemplateArchives => new TemplateArchives(join(home, "templates"));
const newFleet = (options: FakeFleetOptions = {}): Promise<FakeFleet> =>
  createFakeFleet({ instances: ["i-1"], policy: { maxInstances: 2 }, archives: archives(), ...options });

async function importOn(fleet: FakeFleet, name: string, text: string): Promise<string> {
  async function* archive() {
    yield await Promise.resolve(Buffer.from(text));
  }
  const { template } = await fleet.control.importTemplate({ idempotencyKey: "", name, archive: archive() }, CALL);
  return `${template.name}@${template.digest}`;
}

async function addHost(fleet: FakeFleet, instanceId: string): Promise<void> {
  await fleet.provisioner.launch({ instanceId, tags: fleetTags(fleet.registry.fleetId) }, CALL);
  await fleet.registry.refresh(CALL);
}

const versionsOn = (fleet: FakeFleet, instanceId: string): readonly string[] =>
  fleet.host(instanceId).templates.map(({ name, digest }) => `${name}@${digest}`);

async function until(fleet: FakeFleet, instanceId: string, versions: readonly string[]): Promise<void> {
  const look = (): true | undefined => (versionsOn(fleet, instanceId).length === versions.length ? true : undefined);
  await poll(look, { clock: systemClock, everyMs: 2, atMostMs: 5000 });
  expect(versionsOn(fleet, instanceId)).toEqual(versions);
}

describe("a host that comes after templates were imported", () => {
  it("gets them, in their order", async () => {
    await using fleet = await newFleet();
    const versions = [await importOn(fleet, "py", "one"), await importOn(fleet, "py", "two")];
    await addHost(fleet, "i-2");
    await fleet.tick();
    await until(fleet, "i-2", versions);
  });

  it("gets them also if no earlier host is left, and from an orchestrator that has started since", async () => {
    await using before = await newFleet();
    const version = await importOn(before, "py", "one");
    await using fleet = await newFleet({ instances: ["j-1"] });
    await fleet.tick();
    await until(fleet, "j-1", [version]);
  });

  it("is no candidate for a template before it has it, and creates wait for that", async () => {
    const importing = Promise.withResolvers<void>();
    await using fleet = await newFleet({
      hosts: {
        "i-2": { before: (operation) => (operation === "importTemplate" ? importing.promise : Promise.resolve()) },
      },
    });
    await importOn(fleet, "py", "one");
    fleet.host("i-1").setReport({ maxSessions: 1, sessionCount: 1 });
    await addHost(fleet, "i-2");
    const create = fleet.control.createSandbox({ ...REQUEST, template: "py" }, CALL);
    create.catch(() => undefined);
    const other = await fleet.control.createSandbox({ ...REQUEST, template: "" }, CALL);
    expect(other.sandboxId).toMatch(/^fleet:i-2:/);
    await fleet.tick();
    expect(fleet.queue.waiting).toBe(1);
    importing.resolve();
    expect((await create).sandboxId).toMatch(/^fleet:i-2:/);
  });

  it("is left alone for a while with what it could not take", async () => {
    let failures = 0;
    const before = async (operation: string): Promise<void> => {
      await Promise.resolve();
      if (operation !== "importTemplate" || failures > 0) return;
      failures += 1;
      throw new SandboxError("POOL_FULL", "no room");
    };
    await using fleet = await newFleet({ hosts: { "i-2": { before } } });
    const version = await importOn(fleet, "py", "one");
    await addHost(fleet, "i-2");
    await fleet.tick();
    await poll(() => (failures > 0 ? true : undefined), { clock: systemClock, everyMs: 2, atMostMs: 5000 });
    await fleet.tick();
    expect(versionsOn(fleet, "i-2")).toEqual([]);
    await fleet.clock.advance(60_000);
    await fleet.tick();
    await until(fleet, "i-2", [version]);
  });
});

describe("a template that was removed from all hosts", () => {
  it("is not brought back to them, nor to hosts that come later", async () => {
    await using fleet = await newFleet();
    await importOn(fleet, "old", "one");
    const kept = await importOn(fleet, "py", "two");
    await fleet.tick();
    const { templates } = fleet.host("i-1");
    fleet.host("i-1").setReport({ templates: templates.filter(({ name }) => name !== "old") });
    await fleet.tick();
    await fleet.tick();
    expect(versionsOn(fleet, "i-1")).toHaveLength(2);
    await addHost(fleet, "i-2");
    await fleet.tick();
    await until(fleet, "i-2", [kept]);
  });
});
