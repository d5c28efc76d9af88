import { constants } from "node:os";
import { createDeadline, invalidArgument, SandboxError } from "@turnbox/core";
import type { HostCalls } from "../host-call.ts";
import { DEFAULT_TIMEOUT_MS } from "../link/default-timeouts.ts";
import { pull } from "../stream/pull.ts";
import { toWireCount } from "../wire/number.ts";
import { toLines } from "./lines.ts";
import { createInput } from "./process-input.ts";
import { readOutput } from "./read-output.ts";
import type { ProcessOutput, SandboxProcess, Signal } from "./sandbox-processes.ts";
import { toProcessInfo } from "./to-process-info.ts";

const READY_POLL_MS = 100;
const MAX_SIGNAL = 64;

/** The handle of a process that was launched. */
export function createProcess(calls: HostCalls, processId: string): SandboxProcess {
  const { sessionId, clock } = calls;
  const status: SandboxProcess["status"] = async (options) => {
    const { process } = await calls.call({ options, timeoutMs: DEFAULT_TIMEOUT_MS.read }, ({ host }, { signal }) =>
      host.processes.getProcessStatus({ sessionId, processId }, { signal }),
    );
    return toProcessInfo(process);
  };
  const output: SandboxProcess["output"] = (options = {}) => {
    const from = toWireCount("from", options.from);
    const until = options.follow === false ? "now" : "follow";
    return pull<ProcessOutput>(async (emit, { signal }) => {
      await readOutput(calls, { processId, from, until, onOutput: emit }, { ...options, signal });
    }, options.signal);
  };
  return {
    id: processId,
    status,
    output,
    lines: (options) => toLines(output(options)),
    ...createInput(calls, processId),
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
    // A signal that arrived twice is not the same as one, so it is sent again only where it certainly did not arrive.
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
