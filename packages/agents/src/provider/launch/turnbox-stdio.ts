import { SandboxError, type SandboxProcess } from "@turnbox/client";

/** A process's input. Each write is over when the host has accepted it, whatever happens to connections meanwhile. */
export function inputOf(process: SandboxProcess, signal: AbortSignal): WritableStream<Uint8Array> {
  const closeInput = () => process.closeInput({ signal });
  return new WritableStream<Uint8Array>({
    write: (data) => process.write(data, { signal }),
    close: closeInput,
    abort: closeInput,
  });
}

/** A process's output from its first byte on. A gap breaks it: what reads it cannot tell where a message begins. */
export function outputOf(process: SandboxProcess, signal: AbortSignal): ReadableStream<Uint8Array> {
  const cancelled = new AbortController();
  const output = process.output({ signal: AbortSignal.any([signal, cancelled.signal]) })[Symbol.asyncIterator]();
  return new ReadableStream<Uint8Array>({
    pull: async (controller) => {
      const next = await output.next();
      if (next.done === true) controller.close();
      else if (next.value.droppedBytes > 0) throw lost(next.value.droppedBytes);
      else controller.enqueue(next.value.data);
    },
    cancel: (reason) => {
      cancelled.abort(reason);
    },
  });
}

const lost = (bytes: number): SandboxError =>
  new SandboxError("OUTCOME_UNKNOWN", `${bytes} bytes of output were dropped before they were read`);
