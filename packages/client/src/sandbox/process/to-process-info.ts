import { SandboxError } from "@turnbox/core";
import {
  type Process,
  ProcessExitReason as WireReason,
  ProcessState as WireState,
} from "@turnbox/protocol/turnbox/host/v1/process_pb";
import { toNumber } from "../wire/number.ts";
import { toOptional } from "../wire/text.ts";
import { toDate, toDateOrEpoch } from "../wire/time.ts";
import type { ProcessExitReason, ProcessInfo, ProcessState } from "./sandbox-processes.ts";

const STATES: ReadonlyMap<WireState, ProcessState> = new Map([
  [WireState.STARTING, "starting"],
  [WireState.RUNNING, "running"],
  [WireState.EXITED, "exited"],
]);

const REASONS: ReadonlyMap<WireReason, ProcessExitReason> = new Map([
  [WireReason.EXITED, "exited"],
  [WireReason.SIGNALED, "signaled"],
  [WireReason.OOM, "oom"],
  [WireReason.SANDBOX_LOST, "sandbox_lost"],
  [WireReason.STOPPED, "stopped"],
  [WireReason.TERMINAL_CLOSED, "terminal_closed"],
]);

export function toProcessInfo(process: Process | undefined): ProcessInfo {
  if (process === undefined) throw new SandboxError("INTERNAL", "the host's answer has no process");
  return {
    id: process.processId,
    binary: process.binary,
    args: [...process.args],
    state: STATES.get(process.state) ?? "running",
    address: toOptional(process.address),
    exitCode: process.exitCode,
    exitSignal: process.exitSignal === 0 ? undefined : process.exitSignal,
    exitReason: REASONS.get(process.exitReason),
    startedAt: toDateOrEpoch(process.startedAt),
    exitedAt: toDate(process.exitedAt),
    outputBytes: toNumber(process.outputBytes),
    inputBytes: toNumber(process.inputBytes),
    generation: process.generation,
    terminal: process.terminal,
  };
}
