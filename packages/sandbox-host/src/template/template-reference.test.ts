import { describe, expect, it } from "@jest/globals";
import { parseTemplateReference } from "./template-reference.ts";

describe("parseTemplateReference", () => {
  it("takes a name, or a name and a version", () => {
    expect(parseTemplateReference("mini")).toEqual({ name: "mini", version: null });
    expect(parseTemplateReference("mini@0123abcd")).toEqual({ name: "mini", version: "0123abcd" });
  });

  it.each(["", "-x", "Mini", "a/b", "a@", "a@XYZ", "a@0123", "a..b", "a@0123abcd@x", "x".repeat(64), "a b", "a\n"])(
    "refuses %j",
    (raw) => {
      expect(() => parseTemplateReference(raw)).toThrow("base: ");
    },
  );
});
