import { describe, expect, it } from "@jest/globals";
import type { Phase } from "../record/row.ts";
import { assertActive, assertTransition } from "./phase.ts";

const kinds = ["creating", "active", "paused", "destroying", "failed"] as const;

describe("assertTransition", () => {
  it("lets every phase but destroying move to destroying", () => {
    for (const from of kinds) {
      const move = () => {
        assertTransition(from, "destroying");
      };
      if (from === "destroying") expect(move).toThrow("destroying cannot become destroying");
      else expect(move).not.toThrow();
    }
  });

  it("never leads out of destroying nor back to creating", () => {
    for (const kind of kinds) {
      expect(() => {
        assertTransition("destroying", kind);
      }).toThrow();
      expect(() => {
        assertTransition(kind, "creating");
      }).toThrow();
    }
  });
});

describe("assertActive", () => {
  it("names state and operation for every phase but active", () => {
    const reasons: Record<Phase["kind"], string | null> = {
      creating: "INVALID_STATE",
      active: null,
      paused: "SESSION_PAUSED",
      destroying: "SESSION_DESTROYING",
      failed: "INVALID_STATE",
    };
    const phases: readonly Phase[] = [
      { kind: "creating" },
      { kind: "active" },
      { kind: "paused", sinceMs: 1, cause: "request" },
      { kind: "destroying", sinceMs: 1 },
      { kind: "failed", message: "x" },
    ];
    for (const phase of phases) {
      let thrown: unknown = null;
      try {
        assertActive(phase, "TurnComplete");
      } catch (error) {
        thrown = error;
      }
      if (reasons[phase.kind] === null) expect(thrown).toBeNull();
      else
        expect(thrown).toMatchObject({
          reason: reasons[phase.kind],
          metadata: { state: phase.kind, operation: "TurnComplete" },
        });
    }
  });
});
