import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { type Clock, invalidArgument, parseSize, parseVariables, SandboxError } from "@turnbox/core";
import {
  type LaunchProcessRequest,
  LaunchProcessRequestSchema,
  type ProcessService,
  type ReadOutputResponse,
  ReadOutputResponseSchema,
  type TerminalSize as WireSize,
} from "@turnbox/protocol/turnbox/host/v1/process_pb";
import type { KillProcess } from "../process/kill.ts";
import type { LaunchProcess } from "../process/launch.ts";
import type { LaunchedProcess } from "../process/launched-process.ts";
import type { Processes } from "../process/processes.ts";
import { readOutput as readPieces } from "../process/read-output.ts";
import type { Terminals } from "../process/terminals.ts";
import type { WriteInput } from "../process/write-input.ts";
import type { Runtime, TerminalSize } from "../runtime/runtime.ts";
import type { Session } from "../session/session.ts";
import { findSession, signalOf, type Stops, type UsesSessions } from "./call.ts";
import { showProcess } from "./convert-process.ts";
import { keyedRequest } from "./keyed-request.ts";

/** What ProcessService needs. */
export interface ProcessServiceParts extends Stops, UsesSessions {
  readonly processes: Pick<Processes, "get" | "list" | "settle">;
  readonly terminals: Pick<Terminals, "type" | "typedBytes">;
  readonly launchProcess: LaunchProcess;
  readonly killProcess: KillProcess;
  readonly writeInput: WriteInput;
  readonly runtime: Pick<Runtime, "endInput">;
  readonly clock: Clock;
}

type Handlers = ServiceImpl<typeof ProcessService>;

const SIGTERM = 15;
const MAX_SIGNAL = 64;
const MAX_INPUT_BYTES = 1024 * 1024;
const MAX_SIDE = 1000;
const MAX_ARGS_BYTES = 120 * 1024;

/** ProcessService: parse, call the use case, convert. */
export function createProcessService(host: ProcessServiceParts): Partial<Handlers> {
  return {
    launchProcess: launchProcess(host),
    killProcess: killProcess(host),
    getProcessStatus: async (request, context) => {
      const { session, process } = findProcess(host, request, context);
      await host.processes.settle(session, process, context);
      return { process: await showProcess(host, process) };
    },
    listProcesses: async (request, context) => {
      const session = findSession(host, request.sessionId, context);
      const processes = host.processes.list(session);
      return { processes: await Promise.all(processes.map((process) => showProcess(host, process))) };
    },
    readOutput: readOutput(host),
    writeInput: writeInput(host),
    closeInput: closeInput(host),
    resizeTerminal: (request, context) => {
      const { process } = findProcess(host, request, context);
      if (request.size === undefined) throw invalidArgument("size", "is required");
      const size = parseTerminal("size", request.size);
      if (process.terminal === null) throw new SandboxError("INVALID_STATE", "the process has no open terminal");
      process.terminal.resize(size);
      return {};
    },
  };
}

function findProcess(
  host: ProcessServiceParts,
  { sessionId, processId }: { readonly sessionId: string; readonly processId: string },
  context: HandlerContext,
): { readonly session: Session; readonly process: LaunchedProcess } {
  const session = findSession(host, sessionId, context);
  return { session, process: host.processes.get(session, processId) };
}

function launchProcess(host: ProcessServiceParts): Handlers["launchProcess"] {
  return async (request, context) => {
    const session = findSession(host, request.sessionId, context);
    const process = await host.launchProcess(
      session,
      {
        ...keyedRequest(LaunchProcessRequestSchema, request),
        expectedGeneration: request.expectedGeneration,
        ...parseProgram(request),
        env: parseVariables("env", request.env),
        terminal: request.terminal === undefined ? null : parseTerminal("terminal", request.terminal),
      },
      { signal: signalOf(host, request.idempotencyKey, context) },
    );
    return { process: await showProcess(host, process) };
  };
}

function killProcess(host: ProcessServiceParts): Handlers["killProcess"] {
  return async (request, context) => {
    const { session, process } = findProcess(host, request, context);
    if (request.signal > MAX_SIGNAL) throw invalidArgument("signal", `must be from 0 to ${MAX_SIGNAL}`);
    const signal = request.signal === 0 ? SIGTERM : request.signal;
    host.activity.touch(session);
    await host.killProcess(session, process, { signal }, context);
    return { process: await showProcess(host, process) };
  };
}

function readOutput(host: ProcessServiceParts): Handlers["readOutput"] {
  return async function* (request, context): AsyncGenerator<ReadOutputResponse> {
    const { session, process } = findProcess(host, request, context);
    const offset = parseSize("offset", request.offset) ?? 0;
    const signal = AbortSignal.any([context.signal, session.lifetime.signal, host.stopping]);
    await host.processes.settle(session, process, { signal });
    const pieces = readPieces(process, { offset, atEnd: request.follow ? "wait" : "stop", signal }, host.clock);
    for await (const { data, offset: at, droppedBytes, last } of pieces) {
      yield create(ReadOutputResponseSchema, {
        data,
        offset: BigInt(at),
        droppedBytes: BigInt(droppedBytes),
        ...(last === "yes" ? { exited: await showProcess(host, process) } : {}),
      });
    }
    if (!context.signal.aborted) signal.throwIfAborted();
  };
}

function writeInput(host: ProcessServiceParts): Handlers["writeInput"] {
  return async (request, context) => {
    const { session, process } = findProcess(host, request, context);
    const offset = parseSize("offset", request.offset) ?? 0;
    const { data } = request;
    if (data.length > MAX_INPUT_BYTES) throw invalidArgument("data", `must have at most ${MAX_INPUT_BYTES} bytes`);
    host.activity.touch(session);
    const acceptedBytes =
      process.row.terminal === null
        ? await host.writeInput(session, { process, offset, data }, context)
        : await host.terminals.type(process, { offset, data }, context);
    return { acceptedBytes: BigInt(acceptedBytes) };
  };
}

function closeInput(host: ProcessServiceParts): Handlers["closeInput"] {
  return async (request, context) => {
    const { process } = findProcess(host, request, context);
    if (process.row.terminal !== null) {
      throw new SandboxError("INVALID_STATE", "a terminal's input does not end; type Ctrl-D");
    }
    process.input.end();
    await host.runtime.endInput(process.row.container, process.spawned, context);
    return {};
  };
}

function parseProgram(request: LaunchProcessRequest): {
  readonly binary: string;
  readonly args: readonly string[];
  readonly cwd: string;
  readonly port: number;
} {
  const { binary, args } = request;
  const cwd = request.cwd === "" ? "/workspace" : request.cwd;
  if (binary === "") throw invalidArgument("binary", "must not be empty");
  if ([binary, ...args].some((text) => text.includes("\0"))) throw invalidArgument("args", "must not hold a NUL byte");
  if ([binary, ...args].reduce((sum, text) => sum + Buffer.byteLength(text) + 1, 0) > MAX_ARGS_BYTES)
    throw invalidArgument("args", `must have at most ${MAX_ARGS_BYTES} bytes together`);
  if (!cwd.startsWith("/") || cwd.includes("\0")) throw invalidArgument("cwd", "must be an absolute path");
  if (request.exposePort > 65_535) throw invalidArgument("expose_port", "must be from 0 to 65535");
  return { binary, args: [...args], cwd, port: request.exposePort };
}

function parseTerminal(field: string, { columns, rows }: WireSize): TerminalSize {
  for (const side of [columns, rows])
    if (side < 1 || side > MAX_SIDE) throw invalidArgument(field, `must have 1 to ${MAX_SIDE} columns and rows`);
  return { columns, rows };
}
