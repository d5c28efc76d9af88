import type { StorageCall } from "./model.ts";

export interface JournalsSpec {
  readonly token: string;
  /** What all files there may take together. The first bound stays. */
  readonly quotaBytes: number;
}

/** The directory that the output of a session's processes is written to. */
export interface JournalDirectory {
  readonly path: string;
  /** Who may touch the directory: every process, or only one that may hang, as with a head. */
  readonly touch: "directly" | "by_worker";
}

/** Directories of sessions that are no part of their files, for what their processes write. */
export interface Journals {
  /**
   * Makes the session's directory if it is not there. It takes no more than its bound, also while no service runs, if the
   * backend enforces bounds. It goes with the session, and when the session is shrunk.
   */
  openJournals(spec: JournalsSpec, call: StorageCall): Promise<JournalDirectory>;
}
