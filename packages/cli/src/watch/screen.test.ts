import { describe, expect, it } from "@jest/globals";
import { paintScreen } from "./screen.ts";

describe("paintScreen", () => {
  it("counts what does not fit", () => {
    expect(paintScreen("h\n1\n2\n3\n", { rows: 4 })).toBe("\u001b[Hh\u001b[K\n1\u001b[K\nand 2 more\u001b[K\n\u001b[J");
    for (const size of [{ rows: 4 }, { rows: 0 }, {}]) expect(paintScreen("h\n1\n2\n", size)).not.toContain("more");
  });

  it("cuts lines that would wrap", () => {
    expect(paintScreen("12345\n12\n", { columns: 3 })).toBe("\u001b[H123\u001b[K\n12\u001b[K\n\u001b[J");
  });
});
