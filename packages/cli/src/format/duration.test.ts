import { describe, expect, it } from "@jest/globals";
import { formatAge, parseDuration } from "./duration.ts";

describe("formatAge", () => {
  it.each([
    [-5, "now"],
    [999, "now"],
    [1000, "1s"],
    [59_999, "59s"],
    [60_000, "1m"],
    [3_599_999, "59m"],
    [3_600_000, "1h"],
    [86_399_999, "23h"],
    [86_400_000, "1d"],
    [864_000_000, "10d"],
  ])("writes %d ms as %s", (ageMs, text) => {
    expect(formatAge(ageMs)).toBe(text);
  });
});

describe("parseDuration", () => {
  it.each([
    ["500ms", 500],
    ["30s", 30_000],
    ["1.5m", 90_000],
    ["2h", 7_200_000],
    ["1d", 86_400_000],
  ])("reads %s as %d ms", (raw, durationMs) => {
    expect(parseDuration(raw, "timeout")).toBe(durationMs);
  });

  it.each(["", "0", "-1s", "1w", "s", "1e3", "0.0001ms"])("refuses %j and names the field", (raw) => {
    expect(() => parseDuration(raw, "timeout")).toThrow(/^timeout: /);
  });

  it("refuses a number without a unit, and says how to write it", () => {
    expect(() => parseDuration("30", "ttl")).toThrow("ttl: 30 has no unit: write 30s or 30ms");
  });
});
