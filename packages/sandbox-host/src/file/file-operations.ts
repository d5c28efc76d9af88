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
 * The operations on files. An operation runs in a file worker: it may block, it has no state between two jobs, and it may be
 * killed at any time. What it throws becomes a `FileFailure` (errors of the system are translated); its input and output
 * travel as JSON. To add one, write it in a file of its own and name it here; the service calls it with
 * `workers.run("name", ...)`, typed by this table. Operations of other rooms are named in `file-worker/main.ts`; see
 * `operationName`.
 */
export const FILE_OPERATIONS = {
  /** Verifies that the root is there, and does nothing. */
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
