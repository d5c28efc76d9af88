import type { CommandRunner } from "@turnbox/client/internal";

/** Where local tools work. */
export interface LocalTarget {
  /** A real path. */
  readonly root: string;
  /** The environment of programs besides PATH; nothing of this process's own is passed on. */
  readonly env: Readonly<Record<string, string>>;
  readonly runner: CommandRunner;
}
