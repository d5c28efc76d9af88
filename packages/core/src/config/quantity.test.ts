import { describe, expect, it } from "@jest/globals";
import { explainDuration, parseBytes, parseDurationMs } from "./quantity.ts";

describe("parseDurationMs", () => {
  it.each([
    ["250ms", 250],
    ["30s", 30_000],
    ["30 s", 30_000],
    ["1.5h", 5_400_000],
    ["2m", 120_000],
    ["1d", 86_400_000],
    ["0.4ms", 0],
    ["0", 0],
    [0, 0],
  ])("reads %j", (value, ms) => {
    expect(parseDurationMs(value)).toBe(ms);
  });

  it.each([
    "30",
    30,
    1.5,
    "-1s",
    "1e3s",
    "s",
    "",
    " 1s",
    "1s ",
    "1 S",
    "1w",
    "999999999999999d",
    null,
    undefined,
    true,
  ])("refuses %j", (value) => {
    expect(parseDurationMs(value)).toBeUndefined();
  });
});

describe("explainDuration", () => {
  it("names the missing unit and how to write it", () => {
    expect(explainDuration("30")).toBe("30 has no unit: write 30s or 30ms");
    expect(explainDuration(1.5)).toBe("1.5 has no unit: write 1.5s or 1.5ms");
    expect(explainDuration("soon")).toBe('"soon" is not a duration like 500ms, 30s, 2m or 1h');
  });
});

describe("parseBytes", () => {
  it.each([
    [1_048_576, 1_048_576],
    ["1048576", 1_048_576],
    ["20GiB", 20 * 2 ** 30],
    ["1.5 MB", 1_500_000],
    ["3kB", 3000],
    ["7B", 7],
    [0, 0],
  ])("reads %j", (value, bytes) => {
    expect(parseBytes(value)).toBe(bytes);
  });

  it.each([-1, 1.5, "1 XB", "1e9", "9999999TiB", "GiB", null])("refuses %j", (value) => {
    expect(parseBytes(value)).toBeUndefined();
  });
});
