import { closeSync, openSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { serveDatabase, type ServedDatabase } from "@turnbox/core/sqlite";
import { commit, type CommitInput, remove } from "./commit.ts";
import { layoutOf } from "./layout.ts";

// The thread that changes what is under keys. A comparison and the rename after it have to be one step for all processes that
// use the directory, and a file system offers none. So both are done under a lock: each call of a served database is a
// transaction that has the database's write lock. It is a lock of the kernel, which ends with the process that holds it, so
// that no crash leaves it behind and no age has to be guessed; it holds over NFS too. The database itself stays empty.
// Here is also the only place that may wait for the file system: a mount that hangs holds up this thread alone.

/** How long another process may hold the lock. */
const LOCK_TIMEOUT_MS = 10_000;

serveDatabase(({ root }: { readonly root: string }): ServedDatabase => {
  const layout = layoutOf(root);
  closeSync(openSync(layout.lock, "a", 0o600));
  const operations: Readonly<Record<string, (input: never) => unknown>> = {
    commit: (input: CommitInput) => commit(layout, input),
    remove: (keys: readonly string[]) => remove(layout, keys),
  };
  return {
    db: new DatabaseSync(layout.lock, { timeout: LOCK_TIMEOUT_MS }),
    // The input of each operation is checked by the types at the other end.
    run: (name, input) => operations[name]?.(input as never),
  };
});
