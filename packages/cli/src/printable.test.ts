import { describe, expect, it } from "@jest/globals";
import { printable, printableText } from "./printable.ts";

describe("printable", () => {
  it("leaves what can be shown as it is", () => {
    expect(printable("/workspace/grün 漢字.txt")).toBe("/workspace/grün 漢字.txt");
  });

  it.each([
    ["an escape sequence", "a\u001b[2Jb", "a\\u{001b}[2Jb"],
    ["a line end", "a\nb", "a\\u{000a}b"],
    ["a one-byte control sequence", "\u009b2J", "\\u{009b}2J"],
    ["text that runs backwards", "exe\u202egpj", "exe\\u{202e}gpj"],
  ])("shows %s by its number", (_what, text, shown) => {
    expect(printable(text)).toBe(shown);
  });

  it("keeps line ends and tabs of text", () => {
    expect(printableText("+a\tb\n-\u001b[31mc\r\n")).toBe("+a\tb\n-\\u{001b}[31mc\\u{000d}\n");
  });
});
