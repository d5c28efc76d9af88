import { describe, expect, it } from "@jest/globals";
import {
  authorizeOperation,
  decidePermission,
  DEFAULT_PERMISSION_MODE,
  PERMISSION_DECISIONS,
  PERMISSION_MODES,
  PERMISSION_OPERATIONS,
  type PermissionDecision,
  type PermissionMode,
  type PermissionOperation,
} from "./permission.ts";

describe("permissions", () => {
  it("has four operations, five decisions and three modes, of which reads are the default", () => {
    expect(PERMISSION_OPERATIONS).toHaveLength(4);
    expect(PERMISSION_DECISIONS).toEqual(["pending", "allow-once", "allow-always", "reject-once", "reject-always"]);
    expect(PERMISSION_MODES).toHaveLength(3);
    expect(DEFAULT_PERMISSION_MODE).toBe("approve-reads");
  });

  it.each<[PermissionMode, readonly PermissionOperation[]]>([
    ["approve-all", PERMISSION_OPERATIONS],
    ["approve-reads", ["fs/read_text_file", "session/request_permission"]],
    ["deny-all", []],
  ])("authorizes by %s alone: %s", (mode, allowed) => {
    const passes = (operation: PermissionOperation): boolean => {
      try {
        authorizeOperation(mode, operation);
        return true;
      } catch (thrown) {
        expect(thrown).toMatchObject({ reason: "PERMISSION_DENIED", metadata: { operation, mode } });
        return false;
      }
    };
    expect(PERMISSION_OPERATIONS.filter(passes)).toEqual(allowed);
  });

  it.each<[PermissionMode, string | undefined, "inside" | "outside", PermissionDecision]>([
    ["approve-all", "edit", "inside", "allow-once"],
    ["approve-all", undefined, "inside", "allow-once"],
    ["approve-all", "edit", "outside", "reject-once"],
    ["approve-all", "read", "outside", "reject-once"],
    ["approve-reads", "read", "inside", "allow-once"],
    ["approve-reads", "search", "inside", "allow-once"],
    ["approve-reads", "read", "outside", "reject-once"],
    ["approve-reads", "edit", "inside", "pending"],
    ["approve-reads", "edit", "outside", "reject-once"],
    ["approve-reads", "execute", "inside", "pending"],
    ["approve-reads", "fetch", "inside", "pending"],
    ["approve-reads", "think", "inside", "pending"],
    ["approve-reads", "read_and_more", "inside", "pending"],
    ["approve-reads", undefined, "inside", "pending"],
    ["deny-all", "read", "inside", "reject-once"],
    ["deny-all", "edit", "inside", "reject-once"],
    ["deny-all", "edit", "outside", "reject-once"],
  ])("under %s says to %s %s the roots: %s", (mode, kind, places, decision) => {
    expect(decidePermission(mode, { toolCall: { kind } }, places)).toEqual({
      decision,
      needsInteraction: decision === "pending",
    });
  });
});
