import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { DatabaseSync } from "node:sqlite";
import { isFileKnown, listDeadFiles } from "./result-records.ts";

/** Removes files of results whose rows are gone, after the commit that took the rows away. */
export class DeadFiles {
  readonly #db: DatabaseSync;
  readonly #directory: string;

  constructor(db: DatabaseSync, directory: string) {
    this.#db = db;
    this.#directory = directory;
  }

  /** Removes what is known to be dead. A crash in between removes it again, which does no harm. */
  bury(): void {
    for (let names = listDeadFiles(this.#db); names.length > 0; names = listDeadFiles(this.#db)) {
      for (const name of names) this.#remove(name);
      const forget = this.#db.prepare("DELETE FROM dead_files WHERE name = ?");
      this.#db.exec("BEGIN IMMEDIATE");
      for (const name of names) forget.run(name);
      this.#db.exec("COMMIT");
    }
  }

  /** Removes files that no row has: a crash came between a file and its row. Only before anything is served. */
  sweep(): void {
    for (const name of this.#names()) {
      if (!isFileKnown(this.#db, name)) this.#remove(name);
    }
  }

  #names(): readonly string[] {
    try {
      return readdirSync(this.#directory);
    } catch {
      return [];
    }
  }

  #remove(name: string): void {
    rmSync(join(this.#directory, name), { force: true });
  }
}
