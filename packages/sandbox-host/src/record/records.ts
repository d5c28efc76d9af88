import { open } from "node:fs/promises";
import { extname } from "node:path";
import { Worker } from "node:worker_threads";
import { SandboxError } from "@turnbox/core";
import { type Answer, CLOSE, type Request, TEND } from "./message.ts";
import { openNear } from "./near.ts";
import { type InputOf, type OperationName, operations, type OutputOf } from "./operation.ts";
import { LATER_RECORDS } from "./schema.ts";

/**
 * The durable records of the host. Each call is one transaction, on the database's own thread or, where it is quick and
 * alone, on this one; it settles when the change is as safe as its operation promises. A failure is `INTERNAL` and has
 * changed nothing.
 */
export interface Records extends AsyncDisposable {
  /** Calls that are not settled. */
  readonly pending: number;
  call<Name extends OperationName>(name: Name, input: InputOf<Name>): Promise<OutputOf<Name>>;
}

interface Pending {
  readonly resolve: (output: unknown) => void;
  readonly reject: (error: SandboxError) => void;
}

/** How often the worker is told of what was written beside it: by the count of changes, and by the bytes of results. */
const TEND_EVERY = 200;
const TEND_EVERY_BYTES = 1024 * 1024;

/**
 * Opens the database at `path`, making it if there is none. Throws `HOME_VERSION_UNSUPPORTED` for one that a later version
 * wrote and `STORAGE_UNAVAILABLE` for one that cannot be trusted; both are left as they are.
 */
export async function openRecords(path: string): Promise<Records> {
  // The rows hold environments, which may hold secrets. SQLite gives its side files the mode of the database.
  await (await open(path, "a", 0o600)).close();
  // The same file runs from the build (.js) and from source (.ts).
  const worker = new Worker(new URL(`./worker${extname(import.meta.url)}`, import.meta.url), { workerData: { path } });
  const pending = new Map<number, Pending>();
  let nextId = 1;
  let ended: SandboxError | undefined;

  const end = (error: SandboxError): void => {
    ended ??= error;
    for (const { reject } of pending.values()) reject(error);
    pending.clear();
  };
  worker.on("message", (answer: Answer) => {
    const waiter = pending.get(answer.id);
    pending.delete(answer.id);
    if ("error" in answer) waiter?.reject(refusal(answer.error));
    else waiter?.resolve(answer.output);
  });
  worker.on("error", (cause) => {
    end(unusable(path, cause));
  });
  const closed = Promise.withResolvers<undefined>();
  worker.on("exit", () => {
    closed.resolve(undefined);
    end(new SandboxError("STORAGE_UNAVAILABLE", "the records are closed"));
  });

  const ask = (id: number, send: () => void): Promise<unknown> =>
    new Promise((resolve, reject) => {
      if (ended !== undefined) {
        reject(ended);
        return;
      }
      pending.set(id, { resolve, reject });
      send();
    });

  await ask(0, () => undefined);
  const near = openNear(path);
  let writtenNear = 0;
  let bytesNear = 0;
  /** Only where everything that was asked before is done, so that each call sees those before it. */
  const attemptNear = (name: OperationName, input: unknown): { readonly output: unknown } | undefined => {
    if (ended !== undefined || pending.size > 0 || operations[name].pace !== "quick") return undefined;
    try {
      return near.attempt(name, input);
    } catch (thrown) {
      throw refusal(thrown);
    } finally {
      writtenNear += 1;
      bytesNear += sizeOf(input);
      if (writtenNear % TEND_EVERY === 0 || bytesNear > TEND_EVERY_BYTES) {
        bytesNear = 0;
        worker.postMessage({ id: -1, name: TEND, input: null } satisfies Request);
      }
    }
  };
  return {
    get pending() {
      return pending.size;
    },
    call: async (name, input) => {
      const done = attemptNear(name, input);
      if (done !== undefined) return done.output as never;
      const id = nextId++;
      const request: Request = { id, name, input };
      return (await ask(id, () => {
        worker.postMessage(request);
      })) as never;
    },
    [Symbol.asyncDispose]: async () => {
      near[Symbol.dispose]();
      if (ended === undefined) {
        ended = new SandboxError("STORAGE_UNAVAILABLE", "the records are closed");
        worker.postMessage({ id: -1, name: CLOSE, input: null } satisfies Request);
      }
      await closed.promise;
    },
  };
}

function unusable(path: string, cause: unknown): SandboxError {
  const { name, message: why } = cause as Error;
  const reason = name === LATER_RECORDS ? "HOME_VERSION_UNSUPPORTED" : "STORAGE_UNAVAILABLE";
  return new SandboxError(reason, `the records ${path} cannot be used: ${why}`, { cause });
}

/** Of a quick operation's input only a result can be large. */
function sizeOf(input: unknown): number {
  return typeof input === "object" && input !== null && "resultBytes" in input ? Number(input.resultBytes) : 0;
}

function refusal(cause: unknown): SandboxError {
  return new SandboxError("INTERNAL", "the records refused a change", { cause });
}
