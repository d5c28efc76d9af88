import { join } from "node:path";
import type { Clock } from "@turnbox/core";
import type { ProcessRow } from "../record/row.ts";
import type { SpawnedProcess, TerminalExecution } from "../runtime/runtime.ts";
import { createProcessInput, type ProcessInput } from "./input.ts";
import type { Journal } from "./journal.ts";

/** A reader of a journal as it grows. */
export interface Follower {
  /** The offset of the next byte that it reads. */
  position: number;
}

/** A launched process: its row, and what belongs to it on the disk and in memory. */
export interface LaunchedProcess {
  /** Replaced when it changes, after the change is in the records. */
  row: ProcessRow;
  readonly spawned: SpawnedProcess;
  readonly journal: Journal;
  readonly input: ProcessInput;
  readonly followers: Set<Follower>;
  /** Only in the service that opened it. */
  terminal: TerminalExecution | null;
  /** Whether it may be stopped because of its journal, by an earlier service or this one. */
  held: "unknown" | "no";
}

/** The files of a process. */
export interface ProcessFiles {
  /** Its own directory: input, exit code, marks. */
  readonly directory: string;
  readonly journal: Journal;
}

export function createLaunchedProcess(row: ProcessRow, files: ProcessFiles, clock: Clock): LaunchedProcess {
  const { directory, journal } = files;
  return {
    row,
    spawned: { name: row.processId, directory },
    journal,
    input: createProcessInput(directory, clock),
    followers: new Set(),
    terminal: null,
    held: "unknown",
  };
}

/** A file that exists while the service has stopped the process because of its journal. */
export function heldMark({ spawned }: LaunchedProcess): string {
  return join(spawned.directory, "held");
}
