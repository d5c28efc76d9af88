import { describe, expect, it } from "@jest/globals";
import { FAULTY_PARTS } from "./faulty-parts.ts";
import { parseSimArguments } from "./arguments.ts";
import { measurePlacement } from "./placement-scale.ts";
import { drawScenario, type Fault, type Scenario } from "./scenario.ts";
import { simulate } from "./simulate.ts";
import { IS_FULL, SEED } from "../support/random.ts";

const SEEDS = IS_FULL ? 400 : 25;
const FAULTY_SEEDS = 15;
const LONG_MS = 300_000;

/** Under what the faults of some parts show soonest; the others show under anything. */
const FOCUS: Readonly<
  Record<
    string,
    { readonly faults: readonly Fault[]; readonly clients?: number; readonly policy?: Partial<Scenario["policy"]> }
  >
> = {
  D29: { faults: ["bad_network"] },
  D30: { faults: ["illness"] },
  D32: { faults: [], clients: 0, policy: { minInstances: 3, maxInstances: 6, warmPoolTarget: 0 } },
  unknown: { faults: ["bad_network", "host_restart"] },
};

function focusOf(what: string, seed: number): Partial<Scenario> {
  const focus = Object.entries(FOCUS).find(([word]) => what.includes(word))?.[1];
  if (focus === undefined) return {};
  const policy = { ...drawScenario(seed).policy, maxInstances: 6, ...focus.policy };
  return { faults: focus.faults, policy, clients: focus.clients ?? 80, meanFaultMs: 15_000, stormMs: 600_000 };
}

describe("the simulator", () => {
  it(
    "finds nothing wrong with the fleet, whatever fails, and everything settled once nothing fails any more",
    async () => {
      const failures: string[] = [];
      for (let index = 0; index < SEEDS; index += 1) {
        const { seed, failure } = await simulate(SEED + index);
        if (failure !== undefined) failures.push(`npm run sim -- --seed ${String(seed)}: ${failure}`);
      }
      expect(failures).toEqual([]);
    },
    LONG_MS,
  );

  it("does the same again for the same seed, and something else for another", async () => {
    const digests = [];
    for (const seed of [7, 7, 8]) digests.push((await simulate(seed)).digest);
    expect(digests[1]).toBe(digests[0]);
    expect(digests[2]).not.toBe(digests[0]);
  });

  it.each(Object.entries(FAULTY_PARTS))(
    "notices within a few seeds that %s",
    async (what, parts) => {
      for (let seed = 0; seed < FAULTY_SEEDS; seed += 1) {
        const scenario = { ...focusOf(what, seed), convergeWithinMs: 900_000 };
        const { failure } = await simulate(seed, { parts, scenario });
        if (failure === undefined) continue;
        // It is the fault that was found: without it the same seed is good.
        expect((await simulate(seed, { scenario })).failure).toBeUndefined();
        return;
      }
      throw new Error(`${String(FAULTY_SEEDS)} seeds were good`);
    },
    LONG_MS,
  );

  it("takes the seeds to run from its arguments, and refuses others", () => {
    const parse = (...args: readonly string[]) => parseSimArguments(args, { workers: 2 });
    expect(parse("--seeds", "2000", "--start", "5")).toEqual({ first: 5, count: 2000, workers: 2, isReplay: false });
    expect(parse("--seed", "17")).toEqual({ first: 17, count: 1, workers: 1, isReplay: true });
    expect(() => parse("--seeds", "many")).toThrow("not a whole number");
    expect(() => parse("--sleeds", "1")).toThrow();
  });
});

describe("a fleet of 10,000 instances with 1,000,000 sandboxes", () => {
  // `npm run sim` holds it to its millisecond.
  it("places creates among the least loaded", async () => {
    const { spread } = await measurePlacement({ instances: 10_000, sandboxesPerInstance: 100, creates: 100 });
    expect(spread).toBeGreaterThan(10);
  }, 120_000);
});
