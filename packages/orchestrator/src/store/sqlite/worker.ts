import { serveDatabase, type ServedDatabase } from "@turnbox/core/sqlite";
import { openDatabase } from "./database.ts";
import { createOperations } from "./operations.ts";

// The thread that owns the store.

/**
 * These write nothing, or something that the machine may lose when it goes down: what finishes a create is found again by a later call
 * under its key. Everything else is flushed to the disk.
 */
const UNFLUSHED: ReadonlySet<string> = new Set([
  "finishCreate",
  "waitingCreates",
  "listInstances",
  "getSandbox",
  "findSandboxes",
  "getSandboxes",
  "listSandboxes",
]);

serveDatabase(({ path, retentionMs }: { readonly path: string; readonly retentionMs: number }): ServedDatabase => {
  const db = openDatabase(path);
  // The input of each operation is checked by the types at the other end of the port.
  const operations: Readonly<Record<string, (...args: never[]) => unknown>> = createOperations(db, retentionMs);
  return {
    db,
    run: (name, input) => operations[name]?.(...(input as never[])),
    durability: (name) => (UNFLUSHED.has(name) ? "normal" : "full"),
  };
});
