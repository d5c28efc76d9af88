import { describe, expect, it } from "@jest/globals";
import { type Obstacle, type PlacementInstance, type PlacementRequest, findPlacement } from "./placement.ts";

const RULES = { headroom: 0, maxCandidates: 3 };
const REQUEST: PlacementRequest = { cpus: 1, memoryBytes: 100, diskBytes: 10, template: "" };

const instance = (instanceId: string, changes: Partial<PlacementInstance> = {}): PlacementInstance => ({
  instanceId,
  admission: "open",
  health: "healthy",
  sessions: { used: 0, total: 10 },
  cpus: { used: 0, total: 8 },
  memoryBytes: { used: 0, total: 1000 },
  poolBytes: { used: 0, total: 1000 },
  templates: new Set(["base"]),
  ...changes,
});

const candidates = (instances: readonly PlacementInstance[], request = REQUEST, rules = RULES): readonly string[] => {
  const placement = findPlacement(request, instances, rules);
  return placement.kind === "placed" ? placement.candidates : [];
};

describe("findPlacement", () => {
  it("prefers the least loaded, by whatever it is loaded most with", () => {
    const busyCpu = instance("a", { cpus: { used: 6, total: 8 } });
    const busySessions = instance("b", { sessions: { used: 5, total: 10 } });
    const idle = instance("c", { memoryBytes: { used: 100, total: 1000 } });
    expect(candidates([busyCpu, busySessions, idle])).toEqual(["c", "b", "a"]);
  });

  it("orders equals by id, whatever order they come in", () => {
    expect(candidates([instance("b"), instance("a"), instance("c")])).toEqual(["a", "b", "c"]);
    expect(candidates([instance("c"), instance("b"), instance("a")])).toEqual(["a", "b", "c"]);
  });

  it("spreads over hosts that set no bound, whatever small difference they measured", () => {
    const unbounded = (instanceId: string, used: number, memory: number): PlacementInstance =>
      instance(instanceId, { sessions: { used, total: 0 }, memoryBytes: { used: memory, total: 1000 } });
    expect(candidates([unbounded("a", 3, 301), unbounded("b", 1, 302), unbounded("c", 2, 300)])).toEqual([
      "b",
      "c",
      "a",
    ]);
  });

  it("takes an idle degraded host only after every healthy one", () => {
    const busy = instance("z", { sessions: { used: 9, total: 10 } });
    expect(candidates([instance("a", { health: "degraded" }), busy])).toEqual(["z", "a"]);
  });

  it("passes over a host that is about to get the template, unless a host has it", () => {
    const request = { ...REQUEST, template: "python", isComing: (instanceId: string) => instanceId === "a" };
    expect(findPlacement(request, [instance("a")], RULES)).toMatchObject({
      kind: "refused",
      message: expect.stringContaining("1 still getting the template"),
    });
    const has = instance("z", { templates: new Set(["python"]) });
    expect(findPlacement(request, [instance("a"), has], RULES)).toMatchObject({ candidates: ["z"] });
  });

  it("prefers hosts that have the template, and keeps the others as a last resort", () => {
    const request = { ...REQUEST, template: "python@3" };
    const has = instance("z", { templates: new Set(["python@3"]), sessions: { used: 9, total: 10 } });
    expect(candidates([instance("a"), has], request)).toEqual(["z", "a"]);
  });

  it.each<[Obstacle, Partial<PlacementInstance>]>([
    ["cordoned", { admission: "cordoned" }],
    ["draining", { admission: "draining" }],
    ["booting", { admission: "booting" }],
    ["stopped", { admission: "stopped" }],
    ["unhealthy", { health: "unhealthy" }],
    ["silent", { health: "unknown" }],
    ["sessions", { sessions: { used: 10, total: 10 } }],
    ["cpus", { cpus: { used: 7.5, total: 8 } }],
    ["memory", { memoryBytes: { used: 901, total: 1000 } }],
    ["pool_space", { poolBytes: { used: 991, total: 1000 } }],
  ])("refuses and says why: %s (D28, D30)", (obstacle, changes) => {
    const placement = findPlacement(REQUEST, [instance("a", changes)], RULES);
    expect(placement).toMatchObject({ kind: "refused", why: new Map([[obstacle, 1]]) });
  });

  it("leaves the headroom free", () => {
    const rules = { ...RULES, headroom: 0.2 };
    expect(candidates([instance("a", { sessions: { used: 7, total: 10 } })], REQUEST, rules)).toEqual(["a"]);
    expect(candidates([instance("a", { sessions: { used: 8, total: 10 } })], REQUEST, rules)).toEqual([]);
  });

  it("takes a total of 0 as no bound", () => {
    const unbounded = { used: 1e9, total: 0 };
    expect(
      candidates([
        instance("a", { sessions: unbounded, cpus: unbounded, memoryBytes: unbounded, poolBytes: unbounded }),
      ]),
    ).toEqual(["a"]);
  });

  it("says so when there is nothing to choose from", () => {
    expect(findPlacement(REQUEST, [], RULES)).toMatchObject({ kind: "refused", message: "the fleet has no instances" });
  });

  it("counts each obstacle once for each instance", () => {
    const placement = findPlacement(
      REQUEST,
      [instance("a", { admission: "cordoned" }), instance("b", { sessions: { used: 1, total: 1 } })],
      RULES,
    );
    expect(placement).toMatchObject({ message: "no instance can take the sandbox: 1 cordoned, 1 full (sessions)" });
  });
});

/** A small generator with a seed, so that a failing case can be run again. */
function createRandom(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state % below;
  };
}

describe("findPlacement, on random fleets", () => {
  const fleet = (seed: number): PlacementInstance[] => {
    const random = createRandom(seed);
    return Array.from({ length: 1 + random(60) }, (_, index) =>
      instance(`i-${String(index)}`, {
        admission: random(5) === 0 ? "cordoned" : "open",
        health: (["healthy", "degraded", "unhealthy", "unknown"] as const)[random(4)] ?? "unknown",
        sessions: { used: random(12), total: 10 },
        memoryBytes: { used: random(1000), total: 1000 },
        templates: new Set(random(2) === 0 ? ["base"] : []),
      }),
    );
  };
  const seeds = Array.from({ length: 200 }, (_, index) => index + 1);

  it("never names an instance that has no room or takes nothing, and never refuses while one could", () => {
    for (const seed of seeds) {
      const instances = fleet(seed);
      const able = instances.filter(
        (one) =>
          one.admission === "open" &&
          (one.health === "healthy" || one.health === "degraded") &&
          one.sessions.used + 1 <= one.sessions.total &&
          one.memoryBytes.used + REQUEST.memoryBytes <= one.memoryBytes.total,
      );
      const chosen = candidates(instances);
      expect({ seed, count: chosen.length }).toEqual({ seed, count: Math.min(able.length, RULES.maxCandidates) });
      expect(able.map((one) => one.instanceId)).toEqual(expect.arrayContaining([...chosen]));
    }
  });

  it("agrees with sorting all of them, in any order of arrival", () => {
    for (const seed of seeds) {
      const instances = fleet(seed);
      const all = candidates(instances, REQUEST, { ...RULES, maxCandidates: instances.length });
      expect({ seed, best: candidates(instances) }).toEqual({ seed, best: all.slice(0, RULES.maxCandidates) });
      expect({ seed, best: candidates([...instances].reverse()) }).toEqual({ seed, best: candidates(instances) });
    }
  });
});
