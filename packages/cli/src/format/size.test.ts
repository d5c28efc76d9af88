import { describe, expect, it } from "@jest/globals";
import { formatSize, parseSize } from "./size.ts";

describe("formatSize", () => {
  it.each([
    [0, "0 B"],
    [1, "1 B"],
    [1023, "1023 B"],
    [1024, "1.0 KiB"],
    [1536, "1.5 KiB"],
    [1_048_575, "1.0 MiB"],
    [1_048_576, "1.0 MiB"],
    [5 * 1024 ** 3, "5.0 GiB"],
    [2 * 1024 ** 6, "2048.0 PiB"],
  ])("writes %d as %s", (bytes, text) => {
    expect(formatSize(bytes)).toBe(text);
  });
});

describe("parseSize", () => {
  it.each([
    ["1048576", 1_048_576],
    ["10B", 10],
    ["512KiB", 524_288],
    ["10MiB", 10_485_760],
    ["2GB", 2_000_000_000],
    ["1.5GiB", 1_610_612_736],
  ])("reads %s as %d bytes", (raw, bytes) => {
    expect(parseSize(raw, "quota")).toBe(bytes);
  });

  it.each(["", "0", "-1", "ten", "1X", "1GiBiB", "99999999TiB"])("refuses %j and names the field", (raw) => {
    expect(() => parseSize(raw, "quota")).toThrow(/^quota: /);
  });
});
