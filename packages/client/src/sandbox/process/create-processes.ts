import { randomUUID } from "node:crypto";
import type { HostCalls } from "../host-call.ts";
import { DEFAULT_TIMEOUT_MS } from "../link/default-timeouts.ts";
import type { Sandbox } from "../sandbox.ts";
import { createProcess, toWireSize } from "./create-process.ts";
import { toWireUint32 } from "../wire/number.ts";
import type { LaunchOptions, SandboxProcess, SandboxProcesses, TerminalSize } from "./sandbox-processes.ts";
import { toProcessInfo } from "./to-process-info.ts";

const USUAL_SIZE: TerminalSize = { columns: 80, rows: 24 };
/** Templates need not have bash. */
const ANY_SHELL = 'if command -v bash >/dev/null 2>&1; then exec bash "$@"; else exec sh "$@"; fi';

interface Program extends LaunchOptions {
  readonly binary: string;
  readonly terminal?: TerminalSize;
}

/** Starts it once, also if the answer has to be asked for again. */
async function launch(calls: HostCalls, options: Program): Promise<SandboxProcess> {
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
  return createProcess(calls, toProcessInfo(process), 0);
}

export function createProcesses(calls: HostCalls): SandboxProcesses {
  const { sessionId } = calls;
  return {
    launch: (binary, options = {}) => launch(calls, { ...options, binary }),
    get: async (processId, options) => {
      const { process } = await calls.call({ options, timeoutMs: DEFAULT_TIMEOUT_MS.read }, ({ host }, { signal }) =>
        host.processes.getProcessStatus({ sessionId, processId }, { signal }),
      );
      return createProcess(calls, toProcessInfo(process));
    },
    handle: (process) => createProcess(calls, process),
    list: async (options) => {
      const { processes } = await calls.call({ options, timeoutMs: DEFAULT_TIMEOUT_MS.read }, ({ host }, { signal }) =>
        host.processes.listProcesses({ sessionId }, { signal }),
      );
      return processes.map(toProcessInfo);
    },
  };
}

export function createShell(calls: HostCalls): Sandbox["shell"] {
  return async ({ binary, args = [], size = USUAL_SIZE, env, ...options } = {}) => {
    const program = binary === undefined ? { binary: "sh", args: ["-c", ANY_SHELL, "sh", ...args] } : { binary, args };
    return await launch(calls, { ...options, ...program, env: { TERM: "xterm", ...env }, terminal: size });
  };
}
