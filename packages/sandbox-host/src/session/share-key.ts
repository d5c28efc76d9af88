import type { Session } from "./session.ts";

/** Whose share of what all sessions of a host have in common a call of the session takes: its own. */
export function shareKeyOf({ row }: Session): string {
  return row.token;
}
