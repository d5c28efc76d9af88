import { describe, expect, it } from "@jest/globals";
import { formatAge, parseDuration } from "./duration.ts";
import { formatSize, parseSize } from "./size.ts";
import { formatTable } from "./table.ts";
import { createStyle, PLAIN } from "../style.ts";
import { wrapWords } from "./wrap-words.ts";

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

describe("formatTable", () => {
  it("aligns columns and leaves no trailing spaces", () => {
    expect(
      formatTable(
        ["ID", "STATE", "NAME"],
        [
          ["a", "active", ""],
          ["bcd", "paused", "x"],
        ],
      ),
    ).toBe("ID   STATE   NAME\na    active\nbcd  paused  x\n");
  });

  it("counts the columns that characters take, and shows control characters by their number", () => {
    const rows = [
      ["漢字", "1"],
      ["e\u0301", "2"],
      ["👩‍👩‍👧", "3"],
      ["a\nb", "4"],
    ];
    expect(formatTable(["NAME", "N"], rows)).toBe(
      `NAME        N\n漢字        1\ne\u0301           2\n👩‍👩‍👧          3\na\\u{000a}b   4\n`.replace(
        "b   4",
        "b  4",
      ),
    );
  });

  it("cuts a last cell of prose to the width of the terminal, and nothing else", () => {
    const rows = [["1", "python3 -m http.server 8000"]];
    expect(formatTable(["P", "COMMAND"], rows, { columns: 20, lastCell: "cut" })).toBe(
      "P  COMMAND\n1  python3 -m htt...\n",
    );
    expect(formatTable(["P", "COMMAND"], rows, { lastCell: "cut" })).toContain("8000\n");
    expect(formatTable(["P", "COMMAND"], rows, { columns: 20 })).toContain("8000\n");
  });

  it("colours cells by what they say, and only where the style does", () => {
    const style = createStyle({ isTTY: true }, { color: "allowed" });
    expect(formatTable(["S", "N"], [["up", "x"]], { style, colors: { up: "green" } })).toBe(
      "\u001b[1mS\u001b[22m   \u001b[1mN\u001b[22m\n\u001b[32mup\u001b[39m  x\n",
    );
    expect(formatTable(["S"], [["constructor"]], { style: PLAIN })).toBe("S\nconstructor\n");
  });
});

describe("wrapWords", () => {
  it("breaks between words, indents what follows, and leaves long words whole", () => {
    expect(wrapWords("one two three fourteen-characters", { width: 9, indent: "  " })).toBe(
      "one two\n  three\n  fourteen-characters",
    );
  });
});
