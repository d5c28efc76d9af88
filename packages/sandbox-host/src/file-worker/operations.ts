import { FILE_OPERATIONS } from "../file/file-operations.ts";
import type { OperationTable } from "../file/operation.ts";
import { journalOperation } from "../process/journal-operation.ts";
import { textTool } from "../tool/text/text-tool.ts";

/** Everything that a file worker does: the operations on files, and those that other rooms have it do. */
export const OPERATIONS = {
  ...FILE_OPERATIONS,
  journal: journalOperation,
  textTool,
} satisfies OperationTable;
