import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  ProcessExitReason,
  type Process,
  ProcessSchema,
  ProcessState,
} from "@turnbox/protocol/turnbox/host/v1/process_pb";
import type { LaunchedProcess } from "../process/launched-process.ts";
import type { Terminals } from "../process/terminals.ts";
import type { ProcessEnd } from "../record/row.ts";

const REASONS = {
  exited: ProcessExitReason.EXITED,
  signaled: ProcessExitReason.SIGNALED,
  oom: ProcessExitReason.OOM,
  sandbox_lost: ProcessExitReason.SANDBOX_LOST,
  stopped: ProcessExitReason.STOPPED,
  terminal_closed: ProcessExitReason.TERMINAL_CLOSED,
} as const satisfies Record<ProcessEnd["reason"], ProcessExitReason>;

/** A process as the wire has it, with what its files say at this moment. */
export async function showProcess(
  host: { readonly terminals: Pick<Terminals, "typedBytes"> },
  process: LaunchedProcess,
): Promise<Process> {
  const { row } = process;
  const { end: outputBytes } = await process.journal.extent();
  const inputBytes = row.terminal === null ? process.input.acceptedBytes : host.terminals.typedBytes(process);
  return create(ProcessSchema, {
    processId: row.processId,
    binary: row.binary,
    args: [...row.args],
    state: stateOf(process),
    address: row.address,
    exitSignal: row.end?.signal ?? 0,
    exitReason: row.end === null ? ProcessExitReason.UNSPECIFIED : REASONS[row.end.reason],
    startedAt: timestampFromMs(row.startedAtMs),
    outputBytes: BigInt(outputBytes),
    inputBytes: BigInt(inputBytes),
    generation: row.generation,
    terminal: row.terminal !== null,
    ...(row.end === null ? {} : { exitedAt: timestampFromMs(row.end.atMs) }),
    ...(typeof row.end?.exitCode === "number" ? { exitCode: row.end.exitCode } : {}),
  });
}

function stateOf({ row }: LaunchedProcess): ProcessState {
  if (row.end !== null) return ProcessState.EXITED;
  return row.started === "yes" && row.ready === "yes" ? ProcessState.RUNNING : ProcessState.STARTING;
}
