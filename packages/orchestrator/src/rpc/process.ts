import { create } from "@bufbuild/protobuf";
import { invalidArgument, parseKey, parseVariables } from "@turnbox/core";
import type { LaunchProcessRequest as WireRequest } from "@turnbox/protocol/turnbox/control/v1/sandbox_control_pb";
import { type Process, ProcessSchema, ProcessState } from "@turnbox/protocol/turnbox/host/v1/process_pb";
import type { LaunchProcessRequest, ProcessStatus, SandboxProcess } from "../control/sandbox-control.ts";

/** The highest number of a Unix signal. */
export const MAX_SIGNAL = 64;

const STATES = {
  starting: ProcessState.STARTING,
  running: ProcessState.RUNNING,
  exited: ProcessState.EXITED,
} as const satisfies Record<ProcessStatus, ProcessState>;

export function fromLaunchRequest(request: WireRequest): LaunchProcessRequest {
  const { sandboxId, binary, args, exposePort } = request;
  if (binary === "") throw invalidArgument("binary", "must not be empty");
  if (exposePort > 65_535) throw invalidArgument("expose_port", "must be from 0 to 65535");
  return {
    sandboxId,
    idempotencyKey: parseKey("idempotency_key", request.idempotencyKey),
    binary,
    args: [...args],
    env: parseVariables("env", request.env),
    exposePort,
  };
}

export function toWireProcess({ processId, address, status, exitCode }: SandboxProcess): Process {
  return create(ProcessSchema, {
    processId,
    address,
    state: STATES[status],
    ...(exitCode === undefined ? {} : { exitCode }),
  });
}
