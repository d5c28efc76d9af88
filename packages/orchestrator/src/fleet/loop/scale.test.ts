import { describe, expect, it } from "@jest/globals";
import type { InstanceView } from "../registry/instance-view.ts";
import { scaleDown, scaleUp } from "./scale.ts";
import { booting, NOW_MS, plan, silent, view, world, type WorldChanges } from "./world.suite.ts";

const launches = (instances: readonly InstanceView[], changes: WorldChanges = {}): number =>
  scaleUp(world(instances, changes)).length;
const busy = (instanceId: string) => view(instanceId, { sessions: 5 });
const lost = (instanceId: string) => view(instanceId, { ...silent, machine: undefined, missedLists: 3 });

describe("the scale-up phase", () => {
  it.each<[string, number, readonly InstanceView[], WorldChanges]>([
    ["nothing where nothing is wanted", 0, [], {}],
    ["up to the least number (D32)", 2, [], { policy: { minInstances: 2 } }],
    ["no more than the least number lacks", 1, [busy("a")], { policy: { minInstances: 2 } }],
    [
      "for the least number when one leaves",
      1,
      [view("a", { row: { drain: plan() } })],
      { policy: { minInstances: 1 } },
    ],
    [
      "not for one that is only ill",
      0,
      [view("a", { row: { drain: plan({ reason: "health" }) } })],
      { policy: { minInstances: 1 } },
    ],
    ["for one that its maker lists no more", 1, [lost("a")], { policy: { minInstances: 1 } }],
    ["warm ones", 2, [busy("a")], { policy: { warmPoolTarget: 2 } }],
    ["no warm ones where they boot already (D31)", 0, [booting("a"), booting("b")], { policy: { warmPoolTarget: 2 } }],
    [
      "warm ones beside cordoned ones",
      1,
      [view("a", { row: { admission: "cordoned" } })],
      { policy: { warmPoolTarget: 1 } },
    ],
    ["warm ones beside silent ones", 1, [view("a", silent)], { policy: { warmPoolTarget: 1 } }],
    ["what fast growth will fill", 3, [busy("a")], { predictedInstances: 3 }],
    ["one for all creates that wait", 1, [busy("a")], { waitingCreates: 100 }],
    ["none for creates that wait where one boots (D28)", 0, [busy("a"), booting("b")], { waitingCreates: 100 }],
    [
      "no more than the most",
      1,
      [busy("a"), busy("b")],
      { waitingCreates: 9, policy: { maxInstances: 3, warmPoolTarget: 2 } },
    ],
    ["none beyond the most, whatever waits", 0, [busy("a")], { waitingCreates: 9, policy: { maxInstances: 1 } }],
    ["no more at once than allowed", 3, [], { policy: { minInstances: 9 } }],
    [
      "no more at once than allowed beside those that boot",
      1,
      [booting("a"), booting("b")],
      { policy: { minInstances: 9 } },
    ],
    [
      "none where it cannot",
      0,
      [],
      { waitingCreates: 9, capabilities: { launch: "unsupported", stopStart: "unsupported" } },
    ],
  ])("launches %s", (_what, expected, instances, changes) => {
    expect(launches(instances, changes)).toBe(expected);
  });

  it("says what it launches, and why", () => {
    expect(scaleUp(world([], { waitingCreates: 1, defaultImage: "image-7" }))).toEqual([
      { kind: "launch", image: "image-7", why: "creates wait for room" },
    ]);
  });
});

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
