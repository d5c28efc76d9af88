/** How long a call may take before the command line gives up on it. Tool calls and imports have no such bound. */
export const CALL_MS = {
  read: 30_000,
  /** May boot a container or, through a fleet, wait for a machine. */
  change: 180_000,
} as const;
