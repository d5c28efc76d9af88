import { describe, expect, it } from "@jest/globals";
import type { InstanceView } from "../registry/instance-view.ts";
import { terminate } from "./terminate.ts";
import { booting, NOW_MS, plan, view, silent, type WorldChanges, world } from "./world.suite.ts";

const OLD_MS = NOW_MS - 300_000;
const FIXED: WorldChanges = { capabilities: { launch: "unsupported", stopStart: "unsupported" } };
const neverUp = (more: Partial<InstanceView> = {}) => {
  const instance = booting("a");
  return { ...instance, row: { ...instance.row, createdAtMs: OLD_MS }, ...more };
};
const drained = (row: Parameters<typeof plan>[0], more: Parameters<typeof view>[1] = {}) =>
  view("a", { row: { drain: plan(row) }, ...more });
const discarded = plan({ sessions: "discard", deadlineMs: NOW_MS });
const ended = { row: { goal: "terminated" } } as const;

describe("the terminate phase", () => {
  it.each<[string, InstanceView, string]>([
    ["was emptied by an operator", drained({}), "empty"],
    ["was emptied because it was not needed", drained({ reason: "scale_down" }), "empty"],
    ["was emptied before its maker takes it back", drained({ reason: "interruption" }), "empty"],
    ["was emptied because of its image", drained({ reason: "refresh" }), "empty"],
    ["was given up with what it holds", view("a", { sessions: 9, row: { drain: discarded } }), "discard"],
    ["was given up, stopped", view("a", { sessions: 9, row: { drain: discarded, goal: "stopped" } }), "discard"],
    ["never came up", neverUp(), "never_came_up"],
  ])("ends a machine that %s", (_what, instance, proof) => {
    expect(terminate(world([instance]))).toEqual([{ kind: "terminate", instanceId: "a", proof }]);
  });

  it.each<[string, InstanceView]>([
    ["is in use", view("a", { sessions: 1 })],
    ["holds a sandbox while it is emptied (D27)", drained({ deadlineMs: 0 }, { sessions: 1 })],
    ["is ill", drained({ reason: "health", deadlineMs: 0 })],
    ["is silent while it is emptied", drained({ deadlineMs: 0 }, silent)],
    ["stays silent", view("a", { ...silent, badInRow: 100_000 })],
    ["still may come up", booting("a")],
    ["has answered once", view("a", { ...silent, isAnswering: false, row: { createdAtMs: OLD_MS } })],
    ["may hold a sandbox", neverUp({ sessions: 1 })],
    ["may be used until the deadline", view("a", { sessions: 1, row: { drain: plan({ sessions: "discard" }) } })],
  ])("never ends a machine that %s", (_what, instance) => {
    expect(terminate(world([instance]))).toEqual([]);
  });

  it("asks for an end again that did not come about, and tells people in the end", () => {
    expect(terminate(world([view("a", { ...ended, terminateTries: 4 })]))).toMatchObject([{ kind: "terminate" }]);
    expect(terminate(world([view("a", { ...ended, terminateTries: 5 })]))).toMatchObject([
      { kind: "terminate" },
      { kind: "report" },
    ]);
  });

  it("leaves drained machines drained that it did not make", () => {
    expect(terminate(world([drained({ deadlineMs: 0 })], FIXED))).toEqual([]);
    expect(terminate(world([view("a", { row: { drain: discarded } })], FIXED))).toMatchObject([{ kind: "report" }]);
  });
});
