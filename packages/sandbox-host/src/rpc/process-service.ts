import { create } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { invalidArgument, parseKey, parseSize, parseVariables, SandboxError } from "@turnbox/core";
import { principalOf } from "@turnbox/rpc/server";
import {
  type LaunchProcessRequest,
  LaunchProcessRequestSchema,
  type ProcessService,
  type ReadOutputResponse,
  ReadOutputResponseSchema,
  type TerminalSize as WireSize,
} from "@turnbox/protocol/turnbox/host/v1/process_pb";
import type { LaunchedProcess } from "../process/launched-process.ts";
import { readOutput } from "../process/read-output.ts";
import type { TerminalSize } from "../runtime/runtime.ts";
import type { Session } from "../session/session.ts";
import { canonicalRequest } from "./canonical.ts";
import { showProcess } from "./convert-process.ts";
import type { Host } from "./host.ts";
import { signalOf } from "./signal.ts";

const SIGTERM = 15;
const MAX_SIGNAL = 64;
const MAX_INPUT_BYTES = 1024 * 1024;
const MAX_SIDE = 1000;
const MAX_ARGS_BYTES = 120 * 1024;

/** ProcessService: parse, call the use case, convert. */
export function createProcessService(host: Host): Partial<ServiceImpl<typeof ProcessService>> {
  const find = (id: string, context: HandlerContext): Session => host.registry.get(id, principalOf(context));
  const findProcess = (
    { sessionId, processId }: { readonly sessionId: string; readonly processId: string },
    context: HandlerContext,
  ): { readonly session: Session; readonly process: LaunchedProcess } => {
    const session = find(sessionId, context);
    return { session, process: host.processes.get(session, processId) };
  };

  return {
    launchProcess: async (request, context) => {
      const session = find(request.sessionId, context);
      const process = await host.launchProcess(
        session,
        {
          idempotencyKey: parseKey("idempotency_key", request.idempotencyKey),
          payload: canonicalRequest(LaunchProcessRequestSchema, { ...request, idempotencyKey: "" }),
          expectedGeneration: request.expectedGeneration,
          ...parseProgram(request),
          env: parseVariables("env", request.env),
          terminal: request.terminal === undefined ? null : parseTerminal("terminal", request.terminal),
        },
        { signal: signalOf(host, request.idempotencyKey, context) },
      );
      return { process: await showProcess(host, process) };
    },

    killProcess: async (request, context) => {
      const { session, process } = findProcess(request, context);
      if (request.signal > MAX_SIGNAL) throw invalidArgument("signal", `must be from 0 to ${MAX_SIGNAL}`);
      const signal = request.signal === 0 ? SIGTERM : request.signal;
      host.activity.touch(session);
      await host.killProcess(session, process, { signal }, context);
      return { process: await showProcess(host, process) };
    },

    getProcessStatus: async (request, context) => {
      const { session, process } = findProcess(request, context);
      await host.processes.settle(session, process, context);
      return { process: await showProcess(host, process) };
    },

    listProcesses: async (request, context) => {
      const session = find(request.sessionId, context);
      const processes = host.processes.list(session);
      return { processes: await Promise.all(processes.map((process) => showProcess(host, process))) };
    },

    async *readOutput(request, context): AsyncGenerator<ReadOutputResponse> {
      const { session, process } = findProcess(request, context);
      const offset = parseSize("offset", request.offset) ?? 0;
      const signal = AbortSignal.any([context.signal, session.lifetime.signal, host.stopping]);
      await host.processes.settle(session, process, { signal });
      const pieces = readOutput(process, { offset, atEnd: request.follow ? "wait" : "stop", signal }, host.clock);
      for await (const { data, offset: at, droppedBytes, last } of pieces) {
        yield create(ReadOutputResponseSchema, {
          data,
          offset: BigInt(at),
          droppedBytes: BigInt(droppedBytes),
          ...(last === "yes" ? { exited: await showProcess(host, process) } : {}),
        });
      }
      if (!context.signal.aborted) signal.throwIfAborted();
    },

    writeInput: async (request, context) => {
      const { session, process } = findProcess(request, context);
      const offset = parseSize("offset", request.offset) ?? 0;
      const { data } = request;
      if (data.length > MAX_INPUT_BYTES) throw invalidArgument("data", `must have at most ${MAX_INPUT_BYTES} bytes`);
      host.activity.touch(session);
      const acceptedBytes =
        process.row.terminal === null
          ? await host.writeInput(session, { process, offset, data }, context)
          : await host.terminals.type(process, { offset, data }, context);
      return { acceptedBytes: BigInt(acceptedBytes) };
    },

    closeInput: async (request, context) => {
      const { process } = findProcess(request, context);
      if (process.row.terminal !== null) {
        throw new SandboxError("INVALID_STATE", "a terminal's input does not end; type Ctrl-D");
      }
      process.input.end();
      await host.runtime.endInput(process.row.container, process.spawned, context);
      return {};
    },

    resizeTerminal: (request, context) => {
      const { process } = findProcess(request, context);
      if (request.size === undefined) throw invalidArgument("size", "is required");
      const size = parseTerminal("size", request.size);
      if (process.terminal === null) throw new SandboxError("INVALID_STATE", "the process has no open terminal");
      process.terminal.resize(size);
      return {};
    },
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
