import { Worker } from "node:worker_threads";
import type { Answer, Request, ThreadFailure } from "./message.ts";

/** The errors that the calls of a database thread end with. */
export interface DatabaseErrors {
  /** The database cannot be used; `failure` is what its opening threw. */
  refused(failure: ThreadFailure): Error;
  /** An operation failed, and has changed nothing. */
  failed(failure: ThreadFailure): Error;
  /** The thread broke down; what was under way may or may not have happened. */
  lost(cause: unknown): Error;
  /** The thread was closed before. */
  closed(): Error;
}

export interface DatabaseThreadOptions {
  /** The file of the worker, which calls `serveDatabase`. */
  readonly worker: URL;
  /** What the worker opens the database with. */
  readonly data: unknown;
  readonly errors: DatabaseErrors;
}

interface Waiting {
  readonly resolve: (output: unknown) => void;
  readonly reject: (error: Error) => void;
}

/**
 * A SQLite database in a worker thread of its own, so that no statement holds up this one. Each call is one transaction; calls are done in
 * their order. Its disposal waits for the calls made before.
 */
export class DatabaseThread implements AsyncDisposable {
  readonly #worker: Worker;
  readonly #errors: DatabaseErrors;
  readonly #waiting = new Map<number, Waiting>();
  readonly #opened = Promise.withResolvers<void>();
  readonly #exited = Promise.withResolvers<void>();
  #nextId = 1;
  /** Why no further call is made. */
  #ended: Error | undefined;

  private constructor({ worker, data, errors }: DatabaseThreadOptions) {
    this.#errors = errors;
    this.#worker = new Worker(worker, { workerData: data });
    this.#worker.on("message", (answer: Answer) => {
      this.#receive(answer);
    });
    this.#worker.on("error", (cause) => {
      this.#end(errors.lost(cause));
    });
    this.#worker.on("exit", (code) => {
      this.#end(this.#ended ?? errors.lost(new Error(`the thread ended with ${code}`)));
      this.#exited.resolve();
    });
  }

  /** Starts the thread and waits until it has opened the database. */
  static async open(options: DatabaseThreadOptions): Promise<DatabaseThread> {
    const thread = new DatabaseThread(options);
    try {
      await thread.#opened.promise;
    } catch (thrown) {
      await thread.#exited.promise;
      throw thrown;
    }
    return thread;
  }

  /** Calls that are not settled. */
  get pending(): number {
    return this.#waiting.size;
  }

  /** False once it is closed or has broken down. */
  get isServing(): boolean {
    return this.#ended === undefined;
  }

  async call(name: string, input: unknown): Promise<unknown> {
    if (this.#ended !== undefined) throw this.#ended;
    const id = this.#nextId;
    this.#nextId += 1;
    // What cannot be sent throws here, before anything waits.
    this.#worker.postMessage({ kind: "call", id, name, input } satisfies Request);
    return await new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#ended === undefined) {
      this.#ended = this.#errors.closed();
      this.#worker.postMessage({ kind: "close" } satisfies Request);
    }
    await this.#exited.promise;
  }

  #receive(answer: Answer): void {
    switch (answer.kind) {
      case "opened":
        this.#opened.resolve();
        break;
      case "refused":
        this.#end(this.#errors.refused(answer.failure));
        break;
      case "result":
        this.#take(answer.id)?.resolve(answer.output);
        break;
      case "failed":
        this.#take(answer.id)?.reject(this.#errors.failed(answer.failure));
        break;
    }
  }

  #take(id: number): Waiting | undefined {
    const waiting = this.#waiting.get(id);
    this.#waiting.delete(id);
    return waiting;
  }

  #end(error: Error): void {
    this.#ended ??= error;
    this.#opened.reject(this.#ended);
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}
