import { describe, expect, it } from "@jest/globals";
import { hasReason } from "../error/sandbox-error.ts";
import { newSessionId, parseSessionId } from "./session-id.ts";
import { randomToken } from "./token.ts";

describe("parseSessionId", () => {
  it.each(["a", "0", "build-1.2_x", "A".repeat(128), "a.b.c"])("accepts %s", (id) => {
    expect(parseSessionId(id)).toBe(id);
  });

  it.each([
    "",
    ".",
    "..",
    "-rf",
    "_a",
    "a..b",
    "a/b",
    "a b",
    "a\n",
    "a\u0000",
    "a@b",
    "a;b",
    "$(x)",
    "a%2f",
    "é",
    "A".repeat(129),
    "--root=/",
  ])("refuses %j and names the field and the rule (attack 23)", (id) => {
    try {
      parseSessionId(id, "session_id");
    } catch (thrown) {
      expect(hasReason(thrown, "INVALID_ARGUMENT")).toBe(true);
      expect(thrown).toMatchObject({ metadata: { field: "session_id" } });
      return;
    }
    throw new Error("was accepted");
  });

  it("accepts the ids it makes, each another, of at least 128 bits (attack 58)", () => {
    const ids = Array.from({ length: 1000 }, newSessionId);
    expect(new Set(ids).size).toBe(1000);
    for (const id of ids) expect(parseSessionId(id)).toHaveLength(26);
  });
});

describe("randomToken", () => {
  it("has the asked length, begins with a letter and uses every character of the alphabet", () => {
    const tokens = Array.from({ length: 2000 }, () => randomToken(12));
    for (const token of tokens) expect(token).toMatch(/^[a-z][0-9a-z]{11}$/);
    expect(new Set(tokens.join("")).size).toBe(32);
  });
});
