import { describe, expect, it } from "@jest/globals";
import { hasReason, type Reason } from "@turnbox/core";
import { isFullId, matchSandbox, sessionPart } from "./sandbox-reference.ts";

const reasonOf = (act: () => unknown): Reason | undefined => {
  try {
    act();
    return undefined;
  } catch (thrown) {
    return hasReason(thrown, "INVALID_ARGUMENT", "SANDBOX_NOT_FOUND", "SNAPSHOT_NOT_FOUND")
      ? thrown.reason
      : "INTERNAL";
  }
};

const sandboxes = [
  { sandboxId: "fleet:i1:abc123", name: "web" },
  { sandboxId: "fleet:i1:abd999", name: "" },
  { sandboxId: "fleet:i2:ab", name: "worker" },
];

describe("matchSandbox", () => {
  it.each([
    ["the session part", "abd999", "fleet:i1:abd999"],
    ["a name", "web", "fleet:i1:abc123"],
    ["a unique prefix", "abc", "fleet:i1:abc123"],
    ["an exact session part that is also a prefix of others", "ab", "fleet:i2:ab"],
  ])("finds by %s", (_how, reference, sandboxId) => {
    expect(matchSandbox(reference, sandboxes)).toBe(sandboxId);
  });

  it("lists the candidates of an ambiguous prefix", () => {
    const act = (): string => matchSandbox("a", sandboxes);
    expect(reasonOf(act)).toBe("INVALID_ARGUMENT");
    expect(act).toThrow('id: "a" could be fleet:i1:abc123 (web), fleet:i1:abd999, fleet:i2:ab (worker)');
  });

  it("lists at most ten candidates and counts the rest", () => {
    const many = Array.from({ length: 12 }, (_, index) => ({ sandboxId: `fleet:i:x${String(index)}`, name: "" }));
    expect(() => matchSandbox("x", many)).toThrow(/fleet:i:x9 and 2 more$/);
  });

  it("refuses a name that is also another sandbox's session part", () => {
    expect(reasonOf(() => matchSandbox("ab", [...sandboxes, { sandboxId: "fleet:i3:zz", name: "ab" }]))).toBe(
      "INVALID_ARGUMENT",
    );
  });

  it("says when there is none, and does not match the fleet or instance part", () => {
    expect(reasonOf(() => matchSandbox("fleet", sandboxes))).toBe("SANDBOX_NOT_FOUND");
    expect(reasonOf(() => matchSandbox("", sandboxes))).toBe("INVALID_ARGUMENT");
  });

  it("knows a full id and its session part", () => {
    expect([isFullId("fleet:i1:abc"), isFullId("abc")]).toEqual([true, false]);
    expect(sessionPart("fleet:i1:abc")).toBe("abc");
  });
});
