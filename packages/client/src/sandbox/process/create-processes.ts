import { randomUUID } from "node:crypto";
import { SandboxError } from "@turnbox/core";
import type { HostCalls } from "../host-call.ts";
import { DEFAULT_TIMEOUT_MS } from "../link/default-timeouts.ts";
import type { Sandbox } from "../sandbox.ts";
import { createProcess } from "./create-process.ts";
import { toWireUint32 } from "../wire/number.ts";
import type { LaunchOptions, SandboxProcesses } from "./sandbox-processes.ts";
import type { TerminalSize } from "./sandbox-terminal.ts";
import { toProcessInfo } from "./to-process-info.ts";

const USUAL_SIZE: TerminalSize = { columns: 80, rows: 24 };
/** Templates need not have bash. */
const ANY_SHELL = 'if command -v bash >/dev/null 2>&1; then exec bash "$@"; else exec sh "$@"; fi';

interface Program extends LaunchOptions {
  readonly binary: string;
  readonly terminal?: TerminalSize;
}

/** Starts it once, also where the answer has to be asked for again. */
async function launch(calls: HostCalls, options: Program): Promise<string> {
  const { binary, args = [], env = {}, cwd = "", exposePort = 0, idempotencyKey = randomUUID(), terminal } = options;
  const request = {
    idempotencyKey,
    sessionId: calls.sessionId,
    binary,
    args: [...args],
    env: { ...env },
    cwd,
    exposePort: toWireUint32("exposePort", exposePort),
    ...(terminal === undefined ? {} : { terminal: toWireSize(terminal) }),
  };
  const { process } = await calls.call({ options, timeoutMs: DEFAULT_TIMEOUT_MS.change }, ({ host }, { signal }) =>
    host.processes.launchProcess(request, { signal }),
  );
  if (process === undefined) throw new SandboxError("INTERNAL", "the host started a process and did not say which");
  return process.processId;
}

const toWireSize = ({ columns, rows }: TerminalSize): TerminalSize => ({
  columns: toWireUint32("columns", columns),
  rows: toWireUint32("rows", rows),
});

export function createProcesses(calls: HostCalls): SandboxProcesses {
  const { sessionId } = calls;
  return {
    launch: async (binary, options = {}) => createProcess(calls, await launch(calls, { ...options, binary })),
    get: async (processId, options) => {
      const process = createProcess(calls, processId);
      await process.status(options);
      return process;
    },
    list: async (options) => {
      const { processes } = await calls.call({ options, timeoutMs: DEFAULT_TIMEOUT_MS.read }, ({ host }, { signal }) =>
        host.processes.listProcesses({ sessionId }, { signal }),
      );
      return processes.map(toProcessInfo);
    },
  };
}

export function createShell(calls: HostCalls): Sandbox["shell"] {
  const { sessionId } = calls;
  return async ({ binary, args = [], size = USUAL_SIZE, env, ...options } = {}) => {
    const program = binary === undefined ? { binary: "sh", args: ["-c", ANY_SHELL, "sh", ...args] } : { binary, args };
    const terminal = { ...options, ...program, env: { TERM: "xterm", ...env }, terminal: size };
    const processId = await launch(calls, terminal);
    return {
      ...createProcess(calls, processId),
      resize: async (next, call) => {
        const request = { sessionId, processId, size: toWireSize(next) };
        await calls.call({ options: call, timeoutMs: DEFAULT_TIMEOUT_MS.read }, ({ host }, { signal }) =>
          host.processes.resizeTerminal(request, { signal }),
        );
      },
    };
  };
}
