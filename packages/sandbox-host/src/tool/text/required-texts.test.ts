import { escapeText } from "@turnbox/core";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { requiredTexts } from "./required-texts.ts";

describe("requiredTexts", () => {
  it.each([
    ["needle", ["needle"]],
    ["^class\\s+Need\\w+\\(", ["class"]],
    ["a\\.b\\(c", ["a.b(c"]],
    ["foo+bar", ["foo"]],
    ["colou?r_off", ["r_off"]],
    ["abcd{2}efg{x}", ["efg{x}"]],
    ["import|require", ["import", "require"]],
    ["(import|from) react", [" react"]],
    ["(a|b[)]c)name", ["name"]],
    ["[abc\\]]name", ["name"]],
    ["\\u0041bcd", ["bcd"]],
    ["grün_haus", ["n_haus"]],
  ])("%s needs %j", (source, texts) => {
    expect(requiredTexts(source)).toEqual(texts);
  });

  it.each(["", "ab", "\\d+", "needle|x", "(needle)", ".*", "needle|", "abc*", "[needle]", "\\bfo\\b"])(
    "%s needs nothing that is known",
    (source) => {
      expect(requiredTexts(source)).toBeNull();
    },
  );

  it("never rules out what matches", () => {
    const piece = fc.oneof(
      fc.constantFrom(
        "abc",
        "a",
        "b",
        "xyz",
        "\\.",
        "\\d",
        "\\w",
        "\\x41",
        "\\u0042",
        "\\cJ",
        "é",
        "😀",
        " ",
        "}",
        "]",
      ),
      fc.constantFrom("(abc)", "(?:ab|c)", "(?<n>a)", "[a-c]", "[\\]x]", ".", "\\b", "^", "$", "|", "(?=a)", "(?!q)"),
    );
    const quantifier = fc.constantFrom("", "", "", "*", "+", "?", "{0,2}", "{2}", "{", "*?", "+?");
    const pattern = fc
      .array(fc.tuple(piece, quantifier), { maxLength: 8 })
      .map((parts) => parts.map(([source, count]) => source + count).join(""));
    const text = fc
      .array(fc.constantFrom("abc", "a", "b", "c", "x", "xyz", ".", "1", "A", "B", "é", "😀", " ", "{", "}"))
      .map((parts) => parts.join(""));
    fc.assert(
      fc.property(pattern, text, (source, line) => {
        let regex: RegExp;
        try {
          regex = new RegExp(source);
        } catch {
          return;
        }
        const texts = requiredTexts(source);
        if (texts === null || !regex.test(line)) return;
        expect(texts.some((required) => line.includes(required))).toBe(true);
      }),
      { numRuns: 5000, seed: 20261116 },
    );
  });

  it("is all of a text that is searched for as it is, where it is long enough", () => {
    const ascii = fc.string({ unit: "grapheme-ascii", minLength: 3, maxLength: 20 });
    fc.assert(
      fc.property(ascii, (text) => {
        expect(requiredTexts(escapeText(text))).toEqual([text]);
      }),
    );
  });
});
