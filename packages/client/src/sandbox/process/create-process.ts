import { constants } from "node:os";
import { createDeadline, invalidArgument, SandboxError } from "@turnbox/core";
import type { HostCalls } from "../host-call.ts";
import { DEFAULT_TIMEOUT_MS } from "../link/default-timeouts.ts";
import { pull } from "../stream/pull.ts";
import { toWireCount, toWireUint32 } from "../wire/number.ts";
import { createInput } from "./process-input.ts";
import { readOutput } from "./read-output.ts";
import type { ProcessInfo, ProcessOutput, SandboxProcess, Signal, TerminalSize } from "./sandbox-processes.ts";
import { toProcessInfo } from "./to-process-info.ts";

const READY_POLL_MS = 100;
const MAX_SIGNAL = 64;

/** For the wire. */
export const toWireSize = ({ columns, rows }: TerminalSize): TerminalSize => ({
  columns: toWireUint32("columns", columns),
  rows: toWireUint32("rows", rows),
});

/** The handle of a process. `inputAt` is where its input goes on, if no other caller can have written any. */
export function createProcess(calls: HostCalls, known: ProcessInfo, inputAt?: number): SandboxProcess {
  const { sessionId, clock } = calls;
  const { id: processId } = known;
  const status: SandboxProcess["status"] = async (options) => {
    const { process } = await calls.call({ options, timeoutMs: DEFAULT_TIMEOUT_MS.read }, ({ host }, { signal }) =>
      host.processes.getProcessStatus({ sessionId, processId }, { signal }),
    );
    return toProcessInfo(process);
  };
  const read: SandboxProcess["read"] = async (onOutput, options = {}) => {
    const from = toWireCount("from", options.from);
    const until = options.follow === false ? "now" : "follow";
    return await readOutput(calls, { processId, from, until, onOutput }, options);
  };
  const output: SandboxProcess["output"] = (options = {}) =>
    pull<ProcessOutput>(async (emit, { signal }) => {
      await read(emit, { ...options, signal });
    }, options.signal);
  return {
    id: processId,
    known,
    status,
    read,
    output,
    lines: (options) => toLines(output(options)),
    ...createInput(calls, processId, inputAt),
    resize: async (size, options) => {
      const request = { sessionId, processId, size: toWireSize(size) };
      await calls.call({ options, timeoutMs: DEFAULT_TIMEOUT_MS.read }, ({ host }, { signal }) =>
        host.processes.resizeTerminal(request, { signal }),
      );
    },
    ready: async (options = {}) => {
      const ms = options.timeoutMs ?? DEFAULT_TIMEOUT_MS.change;
      using deadline = createDeadline({ clock, ms, ...(options.signal && { signal: options.signal }) });
      const { signal } = deadline;
      for (;;) {
        const info = await status({ signal });
        if (info.state !== "starting") return info;
        await clock.sleep(READY_POLL_MS, { signal }).catch((thrown: unknown) => {
          throw SandboxError.from(thrown);
        });
      }
    },
    // A signal that arrived twice is not the same as one, so it is sent again only if it certainly did not arrive.
    kill: async (signal = "SIGTERM", options) => {
      const request = { sessionId, processId, signal: toSignalNumber(signal) };
      const { process } = await calls.call(
        { options, timeoutMs: DEFAULT_TIMEOUT_MS.read, repeat: "unkeyed" },
        ({ host }, call) => host.processes.killProcess(request, { signal: call.signal }),
      );
      return toProcessInfo(process);
    },
    wait: async (options = {}) => {
      const before = await status(options.signal === undefined ? {} : { signal: options.signal });
      if (before.state === "exited") return before;
      const from = BigInt(before.outputBytes);
      const onOutput = (): Promise<void> => Promise.resolve();
      return (
        (await readOutput(calls, { processId, from, until: "follow", onOutput }, options)) ?? (await status(options))
      );
    },
  };
}

function toSignalNumber(signal: Signal): number {
  if (typeof signal === "number") {
    if (Number.isInteger(signal) && signal >= 1 && signal <= MAX_SIGNAL) return signal;
    throw invalidArgument("signal", `must be from 1 to ${String(MAX_SIGNAL)}`);
  }
  return constants.signals[signal];
}

/** Text as lines, without their ends (LF or CRLF). The last one need not have an end. */
async function* toLines(output: AsyncIterable<ProcessOutput>): AsyncIterable<string> {
  const decoder = new TextDecoder();
  let rest = "";
  for await (const { data } of output) {
    const lines = (rest + decoder.decode(data, { stream: true })).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) yield withoutReturn(line);
  }
  rest += decoder.decode();
  if (rest !== "") yield withoutReturn(rest);
}

const withoutReturn = (line: string): string => (line.endsWith("\r") ? line.slice(0, -1) : line);
