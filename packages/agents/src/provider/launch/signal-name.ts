import { constants } from "node:os";

/** `SIGTERM` for 15; the number as text if the system has no name for it. */
export function signalName(signal: number): string {
  const found = Object.entries(constants.signals).find(([, number]) => number === signal);
  return found?.[0] ?? String(signal);
}
