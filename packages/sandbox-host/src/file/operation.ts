import { listDirectory } from "./op/list-directory.ts";
import { makeDirectory } from "./op/make-directory.ts";
import { move } from "./op/move.ts";
import { packArchive } from "./op/pack-archive.ts";
import { prepareRoot } from "./op/prepare-root.ts";
import { readFile } from "./op/read-file.ts";
import { remove } from "./op/remove.ts";
import { stat } from "./op/stat.ts";
import { unpackArchive } from "./op/unpack-archive.ts";
import { watchDirectory } from "./op/watch-directory.ts";
import { writeFile } from "./op/write-file.ts";
import { journalOperation } from "../process/journal-operation.ts";
import { textTool } from "../tool/text/text-tool.ts";
import type { Walk } from "./walk.ts";

/**
 * The operations that file workers know. One runs in a process of its own kind: it may block, it holds no state between
 * two jobs, it may be killed at any time. What it throws goes to the caller as a `FileFailure` (errors of the system are
 * translated), its input and output go as JSON. To add one: write it in a file of its own and name it here; the service
 * calls it with `workers.run("name", ...)`, typed by this table.
 */
export const OPERATIONS = {
  /** Looks whether the root is there, and does nothing. */
  nothing: ({ walk }: OperationContext): null => {
    walk.assertThere();
    return null;
  },
  /** The filesystem that the root is on. */
  device: ({ walk }: OperationContext): number => walk.device,
  journal: journalOperation,
  listDirectory,
  makeDirectory,
  move,
  packArchive,
  prepareRoot,
  readFile,
  remove,
  stat,
  unpackArchive,
  watchDirectory,
  textTool,
  writeFile,
} satisfies Record<string, Operation<never, unknown>>;

export type Operation<Input, Output> = (context: OperationContext, input: Input) => Output | Promise<Output>;

export interface OperationContext {
  /** On the session's root; everything it opened is closed after the job. */
  readonly walk: Walk;
  /** Sends bytes (at most `MAX_BODY_BYTES`) ahead of the output, with what is to be said about them. Waits for the reader. */
  send(bytes: Uint8Array, about?: unknown): void;
  /** The bytes that come with the job, as they come. Throws `CANCELLED` where they break off. */
  body(): Iterable<Buffer>;
}

export type OperationName = keyof typeof OPERATIONS;
export type InputOf<Name extends OperationName> =
  Parameters<(typeof OPERATIONS)[Name]> extends [unknown, infer Input] ? Input : null;
export type OutputOf<Name extends OperationName> = Awaited<ReturnType<(typeof OPERATIONS)[Name]>>;
