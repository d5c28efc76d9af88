import { describe, expect, it } from "@jest/globals";
import { createOutputTail } from "./output-tail.ts";

const tailOf = (limitBytes: number, ...pieces: readonly (string | Buffer)[]) => {
  const tail = createOutputTail(limitBytes);
  for (const piece of pieces) tail.add(Buffer.from(piece));
  return tail;
};

describe("createOutputTail", () => {
  it("keeps everything up to its limit, and says that nothing is missing", () => {
    const tail = tailOf(6, "abc", "def");
    expect([tail.text(), tail.truncated]).toEqual(["abcdef", false]);
  });

  it("keeps the last bytes, over pieces and within one", () => {
    for (const pieces of [["abc", "def", "gh"], ["abcdefgh"], ["a", "b", "c", "d", "e", "f", "g", "h"]]) {
      const tail = tailOf(5, ...pieces);
      expect([tail.text(), tail.truncated]).toEqual(["defgh", true]);
    }
  });

  it("cuts between characters, and shows less rather than half of one", () => {
    expect(tailOf(4, "aüü").text()).toBe("üü");
    expect(tailOf(3, "aüü").text()).toBe("ü");
    expect(tailOf(5, "x😀😀").text()).toBe("😀");
    expect(tailOf(3, "😀").text()).toBe("");
  });

  it("holds the beginning of a character back until the rest has come", () => {
    const bytes = Buffer.from("a😀");
    const tail = tailOf(100, bytes.subarray(0, 3));
    expect(tail.text()).toBe("a");
    tail.add(bytes.subarray(3));
    expect(tail.text()).toBe("a😀");
  });

  it("shows nothing from before a gap, and keeps nothing with a limit of 0", () => {
    const tail = tailOf(10, "old");
    tail.skip(5);
    tail.add(Buffer.from("new"));
    expect([tail.text(), tail.truncated]).toEqual(["new", true]);
    const none = tailOf(0, "x");
    expect([none.text(), none.truncated]).toEqual(["", true]);
  });
});
