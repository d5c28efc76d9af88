import { DatabaseSync } from "node:sqlite";
import { type InputOf, type OperationName, operations, type OutputOf } from "./operation.ts";

/** What each tool call needs, and a few pages answer without a flush of the disk. */
const INLINE = ["beginCall", "finishCall", "forgetCall", "findReceipt", "findSnapshot"] as const;
type InlineName = (typeof INLINE)[number];

const SQLITE_BUSY = 5;
/** Extended codes have the plain one in their lowest byte. */
const PLAIN = 0xff;
/** Among so many operations, or after so many bytes of results, one is left to the database's thread, which tends the file after it. */
const LEAVE_EVERY = 200;
const LEAVE_EVERY_BYTES = 1024 * 1024;

/**
 * A second connection to the records, on the thread that serves requests. An operation that is alone is done here before the
 * database's thread has woken up. It never waits, neither for a lock nor for the disk: only the other connection begins the
 * log of the database again, which is what needs a flush.
 */
export class InlineConnection implements Disposable {
  readonly #db: DatabaseSync;
  readonly #begin;
  readonly #commit;
  #count = 0;
  #bytes = 0;

  constructor(path: string) {
    const db = new DatabaseSync(path);
    db.exec(
      "PRAGMA busy_timeout = 0; PRAGMA wal_autocheckpoint = 0; PRAGMA synchronous = NORMAL; PRAGMA foreign_keys = ON",
    );
    this.#db = db;
    this.#begin = db.prepare("BEGIN IMMEDIATE");
    this.#commit = db.prepare("COMMIT");
  }

  /** Undefined if the database's thread has to do it; nothing has happened then. Throws if the operation itself fails. */
  attempt<Name extends OperationName>(
    name: Name,
    input: InputOf<Name>,
  ): { readonly output: OutputOf<Name> } | undefined {
    if (!isInline(name) || !this.#db.isOpen || this.#isLeft(input)) return undefined;
    const { run } = operations[name];
    try {
      this.#begin.run();
      const output = run(this.#db, input as never) as OutputOf<Name>;
      this.#commit.run();
      return { output };
    } catch (thrown) {
      if (this.#db.isTransaction) this.#db.exec("ROLLBACK");
      if (isBusy(thrown)) return undefined;
      throw thrown;
    }
  }

  [Symbol.dispose](): void {
    if (this.#db.isOpen) this.#db.close();
  }

  #isLeft(input: unknown): boolean {
    this.#count += 1;
    this.#bytes +=
      typeof input === "object" && input !== null && "resultBytes" in input ? Number(input.resultBytes) : 0;
    if (this.#count < LEAVE_EVERY && this.#bytes < LEAVE_EVERY_BYTES) return false;
    this.#count = 0;
    this.#bytes = 0;
    return true;
  }
}

const isInline = (name: OperationName): name is InlineName => (INLINE as readonly string[]).includes(name);

function isBusy(thrown: unknown): boolean {
  const code = typeof thrown === "object" && thrown !== null && "errcode" in thrown ? Number(thrown.errcode) : 0;
  return (code & PLAIN) === SQLITE_BUSY;
}
