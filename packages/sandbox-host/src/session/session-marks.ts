import type { HuskRow, SessionRow } from "../record/row.ts";
import type { Marks } from "../storage/storage.ts";
import { letterPair, policyMarks } from "./policy-marks.ts";

/**
 * What the session's marks in the storage say about it, so that its record can be rebuilt from the pool alone. The
 * environment is left out: it may hold secrets, and marks are not made to keep them.
 */
export function sessionMarks(row: SessionRow): Marks {
  const labels = Object.entries(row.labels).map(
    ([key, value], index) => [`label_${letterPair(index)}`, `${key}=${value}`] as const,
  );
  return {
    session_id: row.id,
    tenant: row.tenant,
    base: `${row.base.name}@${row.base.digest}`,
    created_at_ms: String(row.createdAtMs),
    limits: JSON.stringify(row.limits),
    ports: JSON.stringify(row.ports),
    ...(row.quotaBytes === null ? {} : { quota_bytes: String(row.quotaBytes) }),
    ...(row.forkedFrom === null ? {} : { forked_from: JSON.stringify(row.forkedFrom) }),
    ...Object.fromEntries(labels),
    ...policyMarks(row.networkPolicy),
    ...changingMarks(row),
  };
}

/** Those of the marks that change while the session lives. */
export function changingMarks(row: SessionRow): Marks {
  return { timing: JSON.stringify(row.timing), turn_counter: String(row.turnCounter) };
}

/** The marks that a husk has and a session does not. */
export function huskMarks({ sinceMs }: HuskRow): Marks {
  return { husk_since_ms: String(sinceMs) };
}

/** The husk that the marks describe; undefined if they are those of a session. */
export function readHusk(token: string, marks: Marks): HuskRow | undefined {
  const { husk_since_ms: since, session_id: sessionId, tenant } = marks;
  if (since === undefined || sessionId === undefined || tenant === undefined) return undefined;
  return { token, sessionId, tenant, sinceMs: Number(since) };
}

export const LABEL_MARK = /^label_[a-z]{2}$/;
