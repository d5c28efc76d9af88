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
import type { AnyOperation, ForeignOperation, OperationContext, OperationTable } from "./operation.ts";

/**
 * The operations on files. One runs in a file worker: it may block, it holds no state between two jobs, it may be killed at
 * any time. What it throws goes to the caller as a `FileFailure` (errors of the system are translated), its input and output
 * go as JSON. To add one: write it in a file of its own and name it here; the service calls it with `workers.run("name", ...)`,
 * typed by this table. Other rooms add theirs in `file-worker/operations.ts`; see `operationName`.
 */
export const FILE_OPERATIONS = {
  /** Looks whether the root is there, and does nothing. */
  nothing: ({ walk }: OperationContext): null => {
    walk.assertThere();
    return null;
  },
  /** The filesystem that the root is on. */
  device: ({ walk }: OperationContext): number => walk.device,
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
  writeFile,
} satisfies OperationTable;

export type OperationName = keyof typeof FILE_OPERATIONS | ForeignOperation<AnyOperation>;
type OperationOf<Name extends OperationName> = Name extends keyof typeof FILE_OPERATIONS
  ? (typeof FILE_OPERATIONS)[Name]
  : Name extends ForeignOperation<infer Op>
    ? Op
    : never;
export type InputOf<Name extends OperationName> =
  Parameters<OperationOf<Name>> extends [unknown, infer Input] ? Input : null;
export type OutputOf<Name extends OperationName> = Awaited<ReturnType<OperationOf<Name>>>;
