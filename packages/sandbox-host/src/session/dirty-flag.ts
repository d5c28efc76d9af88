import type { SessionRow } from "../record/row.ts";

/**
 * What the service itself has certainly written to a session's files. Where there is such a write, nobody has to ask the
 * storage whether anything was written; where there is none, only the storage knows.
 */
export interface DirtyFlag {
  /** Call it before a write, and what it answers when the write has certainly changed something. */
  beginWrite(): () => void;
  /** Whether the files differ for certain from the snapshot that they continue from. */
  readonly isSet: boolean;
}

export function createDirtyFlag(row: () => SessionRow): DirtyFlag {
  /** The files and the snapshot that the last certain write came after. Each seal and each rollback changes it. */
  let last: string | undefined;
  const version = (): string => {
    const { generation, headGeneration, parentSnapshot } = row();
    return JSON.stringify([generation, headGeneration, parentSnapshot]);
  };
  return {
    beginWrite: () => {
      const begun = version();
      return () => {
        // One that a seal came in between of is either before or after that snapshot, which is not known.
        if (version() === begun) last = begun;
      };
    },
    get isSet() {
      return last === version();
    },
  };
}
