import { describe, expect, it } from "@jest/globals";
import { formatTable } from "./table.ts";
import { createStyle, PLAIN } from "../style.ts";

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
