import { open } from "node:fs/promises";
import { extname } from "node:path";
import { SandboxError } from "@turnbox/core";
import { DatabaseThread, type ThreadFailure } from "@turnbox/core/sqlite";
import { InlineConnection } from "./inline-connection.ts";
import type { InputOf, OperationName, OutputOf } from "./operation.ts";
import { LATER_RECORDS } from "./schema.ts";

/**
 * The durable records of the host. Each call is one transaction on the database's own thread or, if it is quick and alone, on
 * this one; it settles when the change is as safe as its operation promises. Calls are done in their order. A failure is
 * `INTERNAL` and has changed nothing.
 */
export interface Records extends AsyncDisposable {
  /** Calls that are not settled. */
  readonly pending: number;
  call<Name extends OperationName>(name: Name, input: InputOf<Name>): Promise<OutputOf<Name>>;
}

/**
 * Opens the database at `path`, making it if there is none. Throws `HOME_VERSION_UNSUPPORTED` for one that a later version
 * wrote and `STORAGE_UNAVAILABLE` for one that cannot be trusted; both are left as they are.
 */
export async function openRecords(path: string): Promise<Records> {
  // The rows hold environments, which may hold secrets. SQLite gives its side files the mode of the database.
  await (await open(path, "a", 0o600)).close();
  await using opened = new AsyncDisposableStack();
  const opening = DatabaseThread.open({
    // The same file runs from the build (.js) and from source (.ts).
    worker: new URL(`./worker${extname(import.meta.url)}`, import.meta.url),
    data: { path },
    errors: {
      refused: (failure) => unusable(path, failure),
      failed: ({ message }) => refused(message),
      lost: (cause) => unusable(path, cause),
      closed: () => new SandboxError("STORAGE_UNAVAILABLE", "the records are closed"),
    },
  });
  const thread = opened.use(await opening);
  const inline = opened.use(new InlineConnection(path));
  const owned = opened.move();
  return {
    get pending() {
      return thread.pending;
    },
    call: async (name, input) => {
      // Only if all that was asked before is done, so that each call sees the calls before it.
      const done = thread.isServing && thread.pending === 0 ? attempt(() => inline.attempt(name, input)) : undefined;
      return done === undefined ? ((await thread.call(name, input)) as never) : done.output;
    },
    [Symbol.asyncDispose]: () => owned.disposeAsync(),
  };
}

function attempt<T>(work: () => T): T {
  try {
    return work();
  } catch (thrown) {
    throw refused(thrown);
  }
}

function refused(cause: unknown): SandboxError {
  return new SandboxError("INTERNAL", "the records refused a change", { cause });
}

function unusable(path: string, cause: unknown): SandboxError {
  const { name, message: why } = cause as ThreadFailure;
  const reason = name === LATER_RECORDS ? "HOME_VERSION_UNSUPPORTED" : "STORAGE_UNAVAILABLE";
  return new SandboxError(reason, `the records ${path} cannot be used: ${why}`, { cause });
}
