import { readProgram } from "../../../system/program.ts";
import { INIT_PROGRAM } from "../container/oci-spec.ts";

/** Names the execution that a process belongs to; children inherit it, also those that leave the process group. */
export const MARKER_VARIABLE = "TURNBOX_EXEC";

/** The processes of one execution. */
export interface Tree {
  /** The value of the marker variable. */
  readonly marker: string;
  /** The process itself, which leads a group; absent when it has ended, since pids are used again. */
  readonly pid?: number;
  /** What an earlier look has found, as `pid:start-time` words. */
  readonly known?: string;
}

/** An execution that there is a record of; `pid` is 0 when it is not known. */
export interface ExecRecord {
  readonly marker: string;
  readonly pid: number;
}

const PROCESS_TREE = readProgram("process-tree.sh");
const LIST_TREE = readProgram("list-tree.awk");
const FIND_LEADERS = readProgram("find-leaders.awk");

/** The program that prints which of the recorded executions still have their process, a marker a line. */
export function findLeadersArgv(records: readonly ExecRecord[]): readonly string[] {
  const words = records.map(({ marker, pid }) => `${marker}:${String(pid)}`);
  return processTree(FIND_LEADERS, "find-leaders", [words.join(" ")]);
}

/** The program that ends a tree. */
export function sweepArgv(tree: Tree): readonly string[] {
  return processTree(LIST_TREE, "sweep", wordsOf(tree));
}

/** The program that asks a tree to end and prints what is known of it. */
export function terminateArgv(tree: Tree & { readonly pid: number }): readonly string[] {
  return processTree(LIST_TREE, "terminate", wordsOf(tree));
}

/** The program that signals a tree. */
export function signalArgv(tree: Tree, signal: number): readonly string[] {
  return processTree(LIST_TREE, "signal", [...wordsOf(tree), String(signal)]);
}

/** It is the runtime's own and static, since a template may have nothing. */
function processTree(
  awk: string,
  action: "find-leaders" | "signal" | "sweep" | "terminate",
  words: readonly string[],
): readonly string[] {
  return [INIT_PROGRAM, "sh", "-c", PROCESS_TREE, "turnbox", INIT_PROGRAM, MARKER_VARIABLE, awk, action, ...words];
}

function wordsOf({ marker, pid, known }: Tree): readonly string[] {
  return [marker, String(pid ?? 0), known ?? ""];
}
