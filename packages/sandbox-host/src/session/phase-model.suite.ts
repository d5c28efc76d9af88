import type { Phase } from "../record/row.ts";

/** What a caller can do with a session, and what may befall it. */
export type Operation =
  | { readonly kind: "create" | "get" | "pause" | "resume" | "turn" | "destroy" | "repair" | "bash" | "break" }
  | {
      readonly kind: "rollback";
      /** Which of the session's snapshots, counted round; the last number is one that does not exist. */
      readonly target: number;
    };

export type OperationKind = Operation["kind"];
type State = "absent" | Phase["kind"];

/** What an operation ends with: `ok`, or the reason of a refusal. */
type Outcome = "ok" | "SESSION_NOT_FOUND" | "SESSION_EXISTS" | "SESSION_PAUSED" | "INVALID_STATE";

const ABSENT = "SESSION_NOT_FOUND";
const needsActive = { absent: ABSENT, active: "ok", paused: "SESSION_PAUSED", failed: "INVALID_STATE" } as const;

/** The whole state machine as a caller sees it that does one thing after the other. */
export const OUTCOMES = {
  create: { absent: "ok", active: "SESSION_EXISTS", paused: "SESSION_EXISTS", failed: "SESSION_EXISTS" },
  get: { absent: ABSENT, active: "ok", paused: "ok", failed: "ok" },
  pause: { absent: ABSENT, active: "ok", paused: "ok", failed: "INVALID_STATE" },
  resume: { absent: ABSENT, active: "ok", paused: "ok", failed: "INVALID_STATE" },
  turn: needsActive,
  rollback: needsActive,
  bash: needsActive,
  destroy: { absent: ABSENT, active: "ok", paused: "ok", failed: "ok" },
  repair: { absent: ABSENT, active: "ok", paused: "ok", failed: "ok" },
  break: { absent: ABSENT, active: "ok", paused: "ok", failed: "ok" },
} as const satisfies Record<OperationKind, Record<Settled, Outcome>>;

/** The states that last. */
export type Settled = Exclude<State, "creating" | "destroying">;

/** The state after an operation that succeeded. */
export function nextState(kind: OperationKind, state: Settled): Settled {
  switch (kind) {
    case "create":
    case "resume":
      return "active";
    case "pause":
      return "paused";
    case "destroy":
      return "absent";
    case "break":
      return "failed";
    case "repair":
      return state === "failed" ? "active" : state;
    case "get":
    case "turn":
    case "rollback":
    case "bash":
      return state;
  }
}

/** What the operations are called in the contract. */
export const NAMES: Partial<Record<OperationKind, string>> = {
  pause: "PauseSession",
  resume: "ResumeSession",
  turn: "TurnComplete",
  rollback: "RollbackSession",
  bash: "ExecuteTool",
};

/** Refusals that operations which run at the same time may give one another. */
export const RACING_REASONS: readonly string[] = [
  "SESSION_NOT_FOUND",
  "SESSION_EXISTS",
  "SESSION_PAUSED",
  "SESSION_DESTROYING",
  "INVALID_STATE",
  "ROLLBACK_IN_PROGRESS",
  "TOOLS_IN_FLIGHT",
  "GENERATION_CHANGED",
  "SNAPSHOT_NOT_FOUND",
  "MAX_SESSIONS_REACHED",
];
