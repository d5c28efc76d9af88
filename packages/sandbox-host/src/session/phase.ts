import { SandboxError } from "@turnbox/core";
import type { Phase } from "../record/row.ts";

type PhaseKind = Phase["kind"];

/** The whole life of a session. `destroying` ends in nothing: the session is forgotten. */
const TRANSITIONS = {
  creating: ["active", "destroying"],
  active: ["paused", "failed", "destroying"],
  paused: ["active", "failed", "destroying"],
  failed: ["active", "destroying"],
  destroying: [],
} as const satisfies Record<PhaseKind, readonly PhaseKind[]>;

/** Throws `INVALID_STATE` for a move that the table does not know. Staying is not a move. */
export function assertTransition(from: PhaseKind, to: PhaseKind): void {
  const allowed: readonly PhaseKind[] = TRANSITIONS[from];
  if (!allowed.includes(to)) {
    throw new SandboxError("INVALID_STATE", `a session that is ${from} cannot become ${to}`, {
      metadata: { from, to },
    });
  }
}

/** Throws the refusal of `operation` if the session is in any phase but `active`. */
export function assertActive(phase: Phase, operation: string): void {
  const metadata = { state: phase.kind, operation };
  switch (phase.kind) {
    case "active":
      return;
    case "paused":
      throw new SandboxError("SESSION_PAUSED", `the session is paused, ${operation} needs it active`, { metadata });
    case "destroying":
      throw new SandboxError("SESSION_DESTROYING", `the session is being destroyed, ${operation} is refused`, {
        metadata,
      });
    case "creating":
    case "failed":
      throw new SandboxError("INVALID_STATE", `the session is ${phase.kind}, ${operation} needs it active`, {
        metadata,
      });
  }
}
