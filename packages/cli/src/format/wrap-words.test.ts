import { describe, expect, it } from "@jest/globals";
import { wrapWords } from "./wrap-words.ts";

describe("wrapWords", () => {
  it("breaks between words, indents what follows, and leaves long words whole", () => {
    expect(wrapWords("one two three fourteen-characters", { width: 9, indent: "  " })).toBe(
      "one two\n  three\n  fourteen-characters",
    );
  });
});
