import { describe, expect, it } from "@jest/globals";
import { health, recovery } from "./health.ts";
import { booting, NOW_MS, plan, silent, view, world } from "./world.suite.ts";
import type { DrainReason } from "../../store/store.ts";

const interrupted = (atMs: number) =>
  ({ state: "running", launchedAtMs: 0, interruption: { atMs, action: "terminate" } }) as const;

describe("the health phase", () => {
  it.each([
    ["is well", view("a")],
    ["was bad less often than it takes", view("a", { badInRow: 2 })],
    ["still boots", { ...booting("a"), badInRow: 9 }],
    ["is draining already", view("a", { badInRow: 9, row: { drain: plan() } })],
    ["is stopped", view("a", { badInRow: 9, row: { goal: "stopped" } })],
  ])("leaves a host alone that %s", (_what, instance) => {
    expect(health(world([instance]))).toEqual([]);
  });

  it("keeps new sandboxes off a host that says itself that it is ill (D30)", () => {
    const deadlineMs = NOW_MS + 600_000;
    expect(health(world([view("a", { health: "unhealthy", badInRow: 3 })]))).toEqual([
      { kind: "drain", instanceId: "a", plan: plan({ reason: "health", sinceMs: NOW_MS, deadlineMs }) },
    ]);
  });

  it("does no more than that to a host that stays silent", () => {
    const actions = health(world([view("a", { ...silent, badInRow: 10_000 })]));
    expect(actions).toMatchObject([{ kind: "drain", plan: { reason: "health", sessions: "keep" } }]);
  });

  it("empties a machine that is about to be taken back, in time", () => {
    expect(health(world([view("a", { machine: interrupted(NOW_MS + 120_000) })]))).toMatchObject([
      { kind: "drain", plan: { reason: "interruption", deadlineMs: NOW_MS + 90_000 } },
    ]);
    const late = health(world([view("a", { machine: interrupted(NOW_MS + 1000), row: { drain: plan() } })]));
    expect(late).toMatchObject([{ kind: "drain", plan: { reason: "interruption", deadlineMs: NOW_MS } }]);
  });
});

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
