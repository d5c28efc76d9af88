import { describe, expect, it } from "@jest/globals";
import type { InstanceView } from "../registry/instance-view.ts";
import { scaleDown } from "./scale-down.ts";
import { booting, NOW_MS, plan, view, silent, type WorldChanges, world } from "./world.suite.ts";

const idle = (instanceId: string, forMs = 60_000, more: Parameters<typeof view>[1] = {}) =>
  view(instanceId, { idleSinceMs: NOW_MS - forMs, ...more });
const leaving = (instances: readonly InstanceView[], changes: WorldChanges = {}) =>
  scaleDown(world(instances, changes)).map((action) => ("instanceId" in action ? action.instanceId : action.kind));

describe("the scale-down phase", () => {
  it.each<[string, readonly string[], readonly InstanceView[], WorldChanges]>([
    ["the longest idle first", ["b", "a"], [idle("a"), idle("b", 90_000)], {}],
    ["none that is idle for too short a time", [], [idle("a", 59_000)], {}],
    ["none below the least number", ["b"], [idle("a"), idle("b", 90_000)], { policy: { minInstances: 1 } }],
    ["none below the warm ones", [], [idle("a"), idle("b")], { policy: { warmPoolTarget: 2 } }],
    ["none that fast growth will need", [], [idle("a")], { predictedInstances: 1 }],
    ["none with sandboxes", [], [idle("a", 90_000, { sessions: 1 })], {}],
    ["none that does not answer", [], [idle("a", 90_000, silent)], {}],
    ["none that boots", [], [booting("a")], {}],
    ["none that an operator looks at", [], [idle("a", 90_000, { row: { admission: "cordoned" } })], {}],
    ["none while creates wait", [], [idle("a")], { waitingCreates: 1 }],
    [
      "none where it could not launch them again",
      [],
      [idle("a")],
      { capabilities: { launch: "unsupported", stopStart: "supported" } },
    ],
    [
      "empty ones beyond the most at once",
      ["a"],
      [idle("a", 10), idle("b", 5)],
      { policy: { maxInstances: 1, warmPoolTarget: 2 } },
    ],
    [
      "no more while those beyond the most leave",
      [],
      [idle("a", 10), view("b", { row: { drain: plan({ reason: "scale_down" }) } })],
      { policy: { maxInstances: 1, warmPoolTarget: 1 } },
    ],
  ])("gives back %s", (_what, expected, instances, changes) => {
    expect(leaving(instances, changes)).toEqual(expected);
  });

  it("empties them first", () => {
    expect(scaleDown(world([idle("a")]))).toEqual([
      {
        kind: "drain",
        instanceId: "a",
        plan: { reason: "scale_down", sinceMs: NOW_MS, deadlineMs: NOW_MS + 600_000, sessions: "keep" },
      },
    ]);
  });
});
