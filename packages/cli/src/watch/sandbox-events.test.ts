import { describe, expect, it } from "@jest/globals";
import type { SandboxView } from "../sandbox-view.ts";
import { afterLook, compareLooks } from "./sandbox-events.ts";

const view = (sandboxId: string, changes: Partial<SandboxView> = {}): SandboxView => ({
  sandboxId,
  name: "",
  state: "active",
  template: "mini@1",
  generation: 1,
  turnCount: 0,
  snapshotCount: 0,
  spaceUsedBytes: 0,
  labels: {},
  createdAt: null,
  expiresAt: null,
  idleTimeoutMs: null,
  onTimeout: "destroy",
  failure: null,
  address: "",
  ...changes,
});

const known = (...views: SandboxView[]) => new Map(views.map((one) => [one.sandboxId, one]));

const kinds = (before: ReadonlyMap<string, SandboxView>, ...now: SandboxView[]) =>
  compareLooks(before, { sandboxes: now, unreachableInstances: [] }).map(({ event }) => event);

describe("compareLooks", () => {
  it.each<[string, Partial<SandboxView>, string[]]>([
    ["nothing", { spaceUsedBytes: 7 }, []],
    ["a pause", { state: "paused" }, ["changed"]],
    ["a rollback, which seals too", { generation: 2, snapshotCount: 1 }, ["changed"]],
    ["another end", { expiresAt: "2026-01-01T12:00:00.000Z" }, ["changed"]],
    ["a turn", { turnCount: 1, snapshotCount: 1 }, ["sealed"]],
    ["a snapshot", { snapshotCount: 1 }, ["sealed"]],
  ])("sees %s", (_what, changes, expected) => {
    expect(kinds(known(view("a")), view("a", changes))).toEqual(expected);
  });

  it("sees what came and what went", () => {
    expect(kinds(known(view("a")), view("b"))).toEqual(["created", "destroyed"]);
    expect(kinds(known(view("a", { snapshotCount: 5 })), view("a", { snapshotCount: 4 }))).toEqual([]);
  });

  it("takes no sandbox for dead whose host is silent", () => {
    const before = known(view("fleet:i1:a"), view("fleet:i2:b"));
    const look = { sandboxes: [], unreachableInstances: ["i2"] };
    expect(compareLooks(before, look).map(({ sandbox }) => sandbox.sandboxId)).toEqual(["fleet:i1:a"]);
    expect([...afterLook(before, look).keys()]).toEqual(["fleet:i2:b"]);
  });
});
