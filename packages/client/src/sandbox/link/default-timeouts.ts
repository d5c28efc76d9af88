/** How long a call may take, attempts and waiting between them included, unless its caller says otherwise. */
export const DEFAULT_TIMEOUT_MS = {
  read: 30_000,
  /** May boot a container or, through a fleet, wait for a machine. */
  change: 180_000,
  /** The longest that a tool may run, and a while for its answer. Tools have shorter bounds of their own. */
  tool: 3_660_000,
  /** Files that go over whole. */
  transfer: 600_000,
  /** Streams, and whatever waits for something inside: as long as it takes. */
  stream: Number.POSITIVE_INFINITY,
  /** Takes what is no longer waited for back from the host. */
  cleanup: 5000,
} as const;
