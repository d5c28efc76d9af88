// The worker of database-thread.test.ts: only node's own modules and relative imports.
import { DatabaseSync } from "node:sqlite";
import { serveDatabase } from "./serve-database.ts";

class LaterVersion extends Error {
  override readonly name = "LaterVersion";
}

let commits = 0;

serveDatabase(({ path, opening }: { readonly path: string; readonly opening: "works" | "fails" }) => {
  if (opening === "fails") throw new LaterVersion("version 9");
  const db = new DatabaseSync(path);
  db.exec("PRAGMA journal_mode = WAL; CREATE TABLE IF NOT EXISTS entries (value TEXT PRIMARY KEY) STRICT");
  const insert = db.prepare("INSERT INTO entries VALUES (?)");
  const operations: Record<string, (input: unknown) => unknown> = {
    add: (input) => insert.run(String(input)).changes,
    addTwoAndFail: (input) => {
      insert.run(`${String(input)} 1`);
      insert.run(`${String(input)} 2`);
      throw new TypeError("after two");
    },
    list: () =>
      db
        .prepare("SELECT value FROM entries ORDER BY rowid")
        .all()
        .map((row) => row["value"]),
    commits: () => commits,
    level: () => db.prepare("PRAGMA synchronous").get()?.["synchronous"],
    rollBack: () => db.exec("ROLLBACK"),
    sleep: (input) => Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, Number(input)),
    crash: () => process.exit(3),
  };
  return {
    db,
    run: (name, input) => {
      const operation = operations[name];
      if (operation === undefined) throw new Error(`there is no operation ${name}`);
      return operation(input);
    },
    durability: (name) => (name === "list" || name === "level" || name === "sleep" ? "normal" : "full"),
    tend: () => {
      commits += 1;
      throw new Error("is dropped");
    },
  };
});
