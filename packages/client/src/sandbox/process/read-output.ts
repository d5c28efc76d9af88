import { raceSignal, SandboxError } from "@turnbox/core";
import type { CallOptions } from "../call.ts";
import type { HostCalls } from "../host-call.ts";
import { DEFAULT_TIMEOUT_MS } from "../link/default-timeouts.ts";
import { toNumber } from "../wire/number.ts";
import type { ProcessInfo, ProcessOutput } from "./sandbox-processes.ts";
import { toProcessInfo } from "./to-process-info.ts";

export interface OutputQuestion {
  readonly processId: string;
  readonly from: bigint;
  /** `follow`: until the process has ended. */
  readonly until: "now" | "follow";
  /** Given every byte once, in order; the next ones wait for it. */
  readonly onOutput: (output: ProcessOutput) => Promise<void>;
}

/** Reads a process's output from an offset on; a stream that breaks goes on where it was. Returns the end, if any. */
export async function readOutput(
  calls: HostCalls,
  { processId, from, until, onOutput }: OutputQuestion,
  options: CallOptions,
): Promise<ProcessInfo | undefined> {
  const { sessionId } = calls;
  let at = from;
  return await calls.call({ options, timeoutMs: DEFAULT_TIMEOUT_MS.stream }, async ({ host }, { signal, progress }) => {
    const question = { sessionId, processId, offset: at, follow: until === "follow" };
    let end: ProcessInfo | undefined;
    // To its end also after the last message: a stream that is left before stays open on its connection.
    for await (const { data, offset, droppedBytes, exited } of host.processes.readOutput(question, { signal })) {
      progress();
      at = offset + BigInt(data.length);
      if (data.length > 0 || droppedBytes > 0n)
        await raceSignal(onOutput({ data, offset: toNumber(offset), droppedBytes: toNumber(droppedBytes) }), signal);
      if (exited !== undefined) end = toProcessInfo(exited);
    }
    signal.throwIfAborted();
    if (end !== undefined || until === "now") return end;
    throw new SandboxError("HOST_UNREACHABLE", "the output ended before the process", { metadata: { processId } });
  });
}
