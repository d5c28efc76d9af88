import { describe, expect, it } from "@jest/globals";
import { predictInstances } from "./forecast.ts";

const every10s = (...counts: readonly number[]) =>
  counts.map((sessions, index) => ({ atMs: index * 10_000, sessions }));

describe("predictInstances", () => {
  it.each([
    ["no growth", 0, every10s(5, 5, 5)],
    ["sandboxes that go", 0, every10s(50, 20, 0)],
    ["nothing known", 0, []],
    ["growth that fills two instances while one boots", 2, every10s(0, 10, 20, 30, 40, 50, 60, 70, 80)],
    ["a burst that has just begun", 1, every10s(0, 10)],
    ["growth, whatever went in between", 1, every10s(0, 10, 0, 10)],
  ])("of %s", (_what, expected, samples) => {
    expect(predictInstances({ samples, bootTimeMs: 40_000, sessionsPerInstance: 20 })).toBe(expected);
  });

  it("predicts nothing where an instance takes any number", () => {
    expect(predictInstances({ samples: every10s(0, 100), bootTimeMs: 40_000, sessionsPerInstance: 0 })).toBe(0);
  });
});
