import { describe, expect, it } from "@jest/globals";
import { Secret } from "@turnbox/core";
import { isPortToken, signPortToken } from "./port-token.ts";

const key = new Secret("k".repeat(43));
const grant = { sessionToken: "abc", port: 8080, generation: 3 };

describe("a port's token", () => {
  it("opens its port of its session in its generation, and nothing else (attack 47)", () => {
    const token = signPortToken(key, { ...grant, expiresAtMs: null });
    const opens = (more: Partial<typeof grant>, by = key): boolean =>
      isPortToken(by, token, { ...grant, ...more, nowMs: 1 });
    expect(opens({})).toBe(true);
    expect(opens({ sessionToken: "abd" })).toBe(false);
    expect(opens({ port: 8081 })).toBe(false);
    expect(opens({ generation: 4 })).toBe(false);
    expect(opens({}, new Secret("j".repeat(43)))).toBe(false);
  });

  it("ends at its time, which cannot be moved", () => {
    const token = signPortToken(key, { ...grant, expiresAtMs: 100 });
    expect(isPortToken(key, token, { ...grant, nowMs: 99 })).toBe(true);
    expect(isPortToken(key, token, { ...grant, nowMs: 100 })).toBe(false);
    expect(isPortToken(key, token.replace(".100.", ".999."), { ...grant, nowMs: 100 })).toBe(false);
    expect(isPortToken(key, token.replace(".100.", ".-."), { ...grant, nowMs: 100 })).toBe(false);
    expect(isPortToken(key, "", { ...grant, nowMs: 1 })).toBe(false);
  });
});
