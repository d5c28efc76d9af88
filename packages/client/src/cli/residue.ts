import { type Clock, hasReason } from "@turnbox/core";
import type { HostClients } from "../client.ts";

/** What is left of a destroyed session: nothing, something, or nobody can tell. */
export type Residue = "gone" | "pending" | "unknown";

export interface ResidueQuestion {
  readonly sessionId: string;
  /** Holds the session's own token. */
  readonly host: HostClients;
  /** Holds a token that may read the host's health, where there is one. */
  readonly operator: HostClients | undefined;
  /** On the clock's monotonic time. */
  readonly deadlineMs: number;
}

const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 500;

/** Asks until the host no longer counts the session among those it removes, or the deadline passes. */
export async function waitForResidue(
  question: ResidueQuestion,
  { clock, signal }: { readonly clock: Clock; readonly signal: AbortSignal },
): Promise<Residue> {
  for (let pauseMs = FIRST_PAUSE_MS; ; pauseMs = Math.min(2 * pauseMs, LONGEST_PAUSE_MS)) {
    const remainingMs = Math.ceil(question.deadlineMs - clock.monotonicMs());
    if (remainingMs <= 0) return "pending";
    const residue = await lookForResidue(question, { signal, timeoutMs: remainingMs });
    if (residue !== "pending") return residue;
    await clock.sleep(pauseMs, { signal });
  }
}

interface Look {
  readonly signal: AbortSignal;
  readonly timeoutMs: number;
}

async function lookForResidue({ sessionId, host, operator }: ResidueQuestion, look: Look): Promise<Residue> {
  try {
    if (operator !== undefined) {
      const { backgroundDestroys } = await operator.host.healthCheck({}, look);
      return backgroundDestroys.some((destroy) => destroy.sessionId === sessionId) ? "pending" : "gone";
    }
  } catch (thrown) {
    if (hasReason(thrown, "CANCELLED")) throw thrown;
    if (!hasReason(thrown, "UNAUTHENTICATED", "PERMISSION_DENIED"))
      return hasReason(thrown, "DEADLINE_EXCEEDED") ? "pending" : "unknown";
  }
  return await lookForSession({ sessionId, host }, look);
}

async function lookForSession(
  { sessionId, host }: Pick<ResidueQuestion, "sessionId" | "host">,
  look: Look,
): Promise<Residue> {
  try {
    await host.sessions.getSession({ sessionId }, look);
    return "pending";
  } catch (thrown) {
    if (hasReason(thrown, "CANCELLED")) throw thrown;
    if (hasReason(thrown, "SESSION_NOT_FOUND")) return "gone";
    return hasReason(thrown, "DEADLINE_EXCEEDED") ? "pending" : "unknown";
  }
}
