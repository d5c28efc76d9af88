import type { SessionRow, Timing } from "../record/row.ts";

/** Nothing expires this soon after a start: callers that were cut off get time to come back. */
export const GRACE_AFTER_START_MS = 60_000;

export type DueAction = "pause" | "destroy";

/** What is said of a session when its time is decided. */
export interface Moment {
  readonly nowMs: number;
  /** How long the session has not been used; time while it was paused or the service was down is not in it. */
  readonly idleMs: number;
  /** How long the service has been up. */
  readonly sinceStartMs: number;
}

/** The time of a session that begins now. */
export function startTiming(policy: Pick<Timing, "ttlMs" | "idleTimeoutMs" | "onTimeout">, nowMs: number): Timing {
  const { idleTimeoutMs, onTimeout } = policy;
  const ttlMs = policy.ttlMs === null ? null : Math.ceil(policy.ttlMs);
  return { ttlMs, expiresAtMs: ttlMs === null ? null : nowMs + ttlMs, idleTimeoutMs, onTimeout };
}

/**
 * The time of a paused session that goes on now. If a timeout pauses, the pause does not count, and a session that had no
 * time left begins again; otherwise the end stays as it was.
 */
export function timingAfterResume({ timing, phase }: Pick<SessionRow, "timing" | "phase">, nowMs: number): Timing {
  const { expiresAtMs, ttlMs, onTimeout } = timing;
  if (phase.kind !== "paused" || onTimeout === "destroy" || expiresAtMs === null) return timing;
  if (expiresAtMs <= phase.sinceMs) return { ...timing, expiresAtMs: ttlMs === null ? null : nowMs + ttlMs };
  // A wall clock that was set back takes nothing away.
  return { ...timing, expiresAtMs: expiresAtMs + Math.max(0, nowMs - phase.sinceMs) };
}

/**
 * The session with a new time that begins now, or without an end. If paused time does not count, it begins to run when
 * the session is resumed.
 */
export function extendTiming(
  { timing, phase }: Pick<SessionRow, "timing" | "phase">,
  ttlMs: number | null,
  nowMs: number,
): Pick<SessionRow, "timing" | "phase"> {
  const extended = { ...timing, ...startTiming({ ...timing, ttlMs }, nowMs) };
  const isHeld = phase.kind === "paused" && timing.onTimeout === "pause";
  return { timing: extended, phase: isHeld ? { ...phase, sinceMs: nowMs } : phase };
}

/** What is due for a session because its time is over; null if nothing is due. */
export function dueAction({ timing, phase }: Pick<SessionRow, "timing" | "phase">, moment: Moment): DueAction | null {
  if (moment.sinceStartMs < GRACE_AFTER_START_MS) return null;
  const { expiresAtMs, onTimeout } = timing;
  const isExpired = expiresAtMs !== null && moment.nowMs >= expiresAtMs;
  switch (phase.kind) {
    case "creating":
    case "destroying":
      return null;
    case "active":
      return isExpired || isIdle(timing, moment) ? onTimeout : null;
    case "paused":
    case "failed":
      return isExpired && onTimeout === "destroy" ? "destroy" : null;
  }
}

function isIdle({ idleTimeoutMs }: Timing, { idleMs }: Moment): boolean {
  return idleTimeoutMs !== null && idleMs >= idleTimeoutMs;
}
