import { describe, expect, it } from "@jest/globals";
import type { DrainReason } from "../../store/store.ts";
import { recovery } from "./recovery.ts";
import { plan, view, world } from "./world.suite.ts";

const drained = (reason: DrainReason, goodInRow: number) => view("a", { goodInRow, row: { drain: plan({ reason }) } });
const stopped = { state: "stopped", launchedAtMs: 0, interruption: undefined } as const;

describe("the recovery phase", () => {
  it("takes a host back after enough good answers, and not before", () => {
    expect(recovery(world([drained("health", 2)]))).toEqual([]);
    expect(recovery(world([drained("health", 3)]))).toEqual([{ kind: "undrain", instanceId: "a" }]);
  });

  it.each<DrainReason>(["scale_down", "operator", "refresh", "interruption"])("lets a drain for %s go on", (reason) => {
    expect(recovery(world([drained(reason, 100)]))).toEqual([]);
  });

  it("starts a machine that should run, and none that should not or cannot", () => {
    expect(recovery(world([view("a", { machine: stopped })]))).toEqual([{ kind: "start", instanceId: "a" }]);
    expect(recovery(world([view("a", { machine: stopped, row: { goal: "stopped" } })]))).toEqual([]);
    const capabilities = { launch: "supported", stopStart: "unsupported" } as const;
    expect(recovery(world([view("a", { machine: stopped })], { capabilities }))).toEqual([]);
  });
});
