import { SandboxError } from "@turnbox/core";
import type { Session } from "./session.ts";

/** Throws `GENERATION_CHANGED` if the caller means another incarnation than the live one. Absent means not checked. */
export function assertGeneration(session: Session, expected: number | undefined): void {
  const current = session.row.generation;
  if (expected === undefined || expected === current) return;
  throw new SandboxError(
    "GENERATION_CHANGED",
    `the session is at generation ${current}, the request expects ${expected}`,
    {
      currentGeneration: current,
      metadata: { sessionId: session.row.id },
    },
  );
}
