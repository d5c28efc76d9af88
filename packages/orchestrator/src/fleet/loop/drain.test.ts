import { describe, expect, it } from "@jest/globals";
import { NOT_BEGUN_MS } from "../registry/drain-plan.ts";
import { drain } from "./drain.ts";
import { booting, NOW_MS, plan, view, silent, world } from "./world.suite.ts";

const over = (more: Parameters<typeof plan>[0] = {}) => plan({ deadlineMs: NOW_MS, ...more });
const holding = (row: Parameters<typeof plan>[0], more: Parameters<typeof view>[1] = {}) =>
  view("a", { sessions: 2, row: { drain: over(row) }, ...more });
const fixed = { capabilities: { launch: "supported", stopStart: "unsupported" } } as const;
const queued = (instanceId: string) =>
  view(instanceId, { row: { drain: plan({ reason: "refresh", sinceMs: NOT_BEGUN_MS, deadlineMs: NOT_BEGUN_MS }) } });

describe("the drain phase", () => {
  it("lets sandboxes go on until the deadline", () => {
    expect(drain(world([view("a", { sessions: 2, row: { drain: plan() } })]))).toEqual([]);
  });

  it.each(["operator", "scale_down", "interruption"] as const)(
    "pauses and keeps what is left at the end of a drain for %s",
    (reason) => {
      expect(drain(world([holding({ reason })]))).toEqual([
        { kind: "pause_sessions", instanceId: "a" },
        { kind: "stop", instanceId: "a" },
      ]);
      expect(drain(world([holding({ reason })], fixed))).toMatchObject([
        { kind: "pause_sessions" },
        { kind: "report" },
      ]);
    },
  );

  it("stops nothing that is ill or silent", () => {
    expect(drain(world([holding({ reason: "health" })]))).toMatchObject([{ kind: "report" }]);
    expect(drain(world([holding({}, silent)]))).toMatchObject([{ kind: "report" }]);
  });

  it("stops a machine again that should be stopped and runs", () => {
    expect(drain(world([view("a", { row: { goal: "stopped" } })]))).toEqual([{ kind: "stop", instanceId: "a" }]);
  });

  it("empties instances of an old image one at a time", () => {
    const instances = [queued("b"), queued("a"), view("c")];
    const began = drain(world(instances));
    const deadlineMs = NOW_MS + 600_000;
    expect(began).toEqual([
      { kind: "drain", instanceId: "a", plan: plan({ reason: "refresh", sinceMs: NOW_MS, deadlineMs }) },
    ]);
    const under = view("d", { row: { drain: plan({ reason: "refresh" }) } });
    expect(drain(world([...instances, under]))).toEqual([]);
    expect(drain(world([...instances, booting("d")]))).toEqual([]);
    expect(drain(world(instances, { policy: { minInstances: 4 } }))).toEqual([]);
  });

  it("passes over an instance of an old image that still holds sandboxes at its deadline", () => {
    expect(drain(world([holding({ reason: "refresh" })]))).toMatchObject([{ kind: "report" }, { kind: "undrain" }]);
  });
});
