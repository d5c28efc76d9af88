import { describe, expect, it } from "@jest/globals";
import { decodeMark, encodeMark, fromProperties, toProperties } from "./marks.ts";

const VALUES = [
  "plain",
  "",
  "-",
  "=",
  "=abc",
  "a\tb\nc",
  "100% %zz",
  "🙂".repeat(128),
  "\t".repeat(512),
  "%".repeat(512),
  "'\"`$(x)",
];

describe("encodeMark", () => {
  it.each(VALUES)("carries %j through a property of at most 1023 bytes", (value) => {
    const encoded = encodeMark(value);
    expect(encoded).toMatch(/^[\x21-\x7e]{1,1023}$/);
    expect(decodeMark(encoded)).toBe(value);
  });

  it("leaves what people read readable", () => {
    expect(encodeMark("session-1.a_b")).toBe("session-1.a_b");
  });
});

describe("decodeMark", () => {
  it("returns what another program wrote as it is", () => {
    expect(decodeMark("50%")).toBe("50%");
  });
});

describe("marks as properties", () => {
  it("come back without ownership, inherited marks and other properties", () => {
    expect(toProperties("h1", { a_b: "x y" })).toEqual(["-o", "turnbox:home=h1", "-o", "turnbox.mark:a_b=x%20y"]);
    const properties = new Map([
      ["turnbox:home", { source: "local", value: "h1" }],
      ["turnbox.mark:a_b", { source: "local", value: "x%20y" }],
      ["turnbox.mark:other", { source: "inherited from p/s", value: "z" }],
      ["atime", { source: "local", value: "off" }],
    ]);
    expect(fromProperties(properties)).toEqual({ a_b: "x y" });
  });

  it("keep ownership apart from a mark of the key home", () => {
    expect(toProperties("h1", { home: "mine" })).toEqual(["-o", "turnbox:home=h1", "-o", "turnbox.mark:home=mine"]);
  });
});
