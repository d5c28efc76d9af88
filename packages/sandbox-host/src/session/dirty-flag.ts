import type { SessionRow } from "../record/row.ts";

/**
 * Whether the service itself has certainly written to a session's files. If it has, the storage need not be asked whether
 * anything was written; if not, only the storage knows.
 */
export class DirtyFlag {
  readonly #row: () => SessionRow;
  /** The version of the files that the last certain write changed. */
  #written: string | undefined;

  constructor(row: () => SessionRow) {
    this.#row = row;
  }

  /** Call it before a write, and the function that it returns when the write has certainly changed something. */
  beginWrite(): () => void {
    const begun = this.#version();
    return () => {
      // A write that overlaps a seal may be on either side of the snapshot, so it does not count.
      if (this.#version() === begun) this.#written = begun;
    };
  }

  /** Whether the files differ for certain from the snapshot that they continue from. */
  get isSet(): boolean {
    return this.#written === this.#version();
  }

  /** Each seal and each rollback changes it. */
  #version(): string {
    const { generation, headGeneration, parentSnapshot } = this.#row();
    return JSON.stringify([generation, headGeneration, parentSnapshot]);
  }
}
