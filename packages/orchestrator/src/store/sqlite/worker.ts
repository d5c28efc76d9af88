// The thread that owns the database. Only node's own modules and relative imports.
import { parentPort, workerData } from "node:worker_threads";
import { DatabaseRefusal, openDatabase } from "./database.ts";
import type { WorkerMessage, WorkerRequest, WorkerSettings } from "./messages.ts";
import { createOperations } from "./operations.ts";

const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));

function serve(): void {
  const port = parentPort;
  if (port === null) throw new Error("the store's worker runs only as a worker thread");
  const settings = workerData as WorkerSettings;
  const send = (message: WorkerMessage): void => {
    port.postMessage(message);
  };

  let database: ReturnType<typeof openDatabase>;
  try {
    database = openDatabase(settings.path);
  } catch (error) {
    const refusal = error instanceof DatabaseRefusal ? error.refusal : "failed";
    send({ kind: "refused", refusal, message: messageOf(error) });
    port.close();
    return;
  }

  const operations = createOperations(database, settings.retentionMs);
  port.on("message", ({ id, operation, args }: WorkerRequest) => {
    try {
      if (operation === "close") {
        database.close();
        send({ kind: "answer", id, result: undefined });
        port.close();
        return;
      }
      const run = operations[operation] as (...values: readonly unknown[]) => unknown;
      send({ kind: "answer", id, result: run(...args) });
    } catch (error) {
      send({ kind: "failure", id, message: messageOf(error) });
    }
  });
  send({ kind: "opened" });
}

serve();
