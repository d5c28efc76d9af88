import { inspect } from "node:util";
import { describe, expect, it } from "@jest/globals";
import { Secret } from "./secret.ts";

describe("Secret", () => {
  const secret = new Secret("hunter2");

  it("gives its value to reveal only", () => {
    expect(secret.reveal()).toBe("hunter2");
  });

  it("prints as redacted wherever it turns into text (attack 60)", () => {
    const texts = [
      String(secret),
      ["a", secret].join(" "),
      JSON.stringify({ nested: { secret } }),
      inspect({ nested: [secret] }, { showHidden: true, depth: 9 }),
      inspect(secret, { customInspect: false, showHidden: true }),
    ];
    for (const text of texts) expect(text).not.toContain("hunter2");
    expect(texts.slice(0, 4).every((text) => text.includes("[redacted]"))).toBe(true);
  });

  it("has no enumerable property that a copy would carry along", () => {
    expect(Object.entries(secret)).toEqual([]);
    expect(structuredClone(secret)).toEqual({});
  });
});
