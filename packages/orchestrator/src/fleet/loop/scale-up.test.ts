import { describe, expect, it } from "@jest/globals";
import type { InstanceView } from "../registry/instance-view.ts";
import { scaleUp } from "./scale-up.ts";
import { booting, plan, view, silent, type WorldChanges, world } from "./world.suite.ts";

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
