import type { CallOptions } from "../call.ts";
import type { HostCalls } from "../host-call.ts";
import { DEFAULT_TIMEOUT_MS } from "../link/default-timeouts.ts";
import type { SandboxProcess } from "./sandbox-processes.ts";

const PIECE_BYTES = 256 * 1024;

/** Input of a process. Writes wait for each other; each byte is sent at its offset, so that it arrives once. */
export function createInput(
  calls: HostCalls,
  processId: string,
  start?: number,
): Pick<SandboxProcess, "write" | "closeInput"> {
  const { sessionId } = calls;
  /** Undefined if it has to be asked for. */
  let at = start === undefined ? undefined : BigInt(start);
  let last: Promise<unknown> = Promise.resolve();

  const inTurn = async (work: () => Promise<void>): Promise<void> => {
    const mine = last.then(work, work);
    last = mine.catch(() => undefined);
    await mine;
  };
  const offsetOf = async (options: CallOptions): Promise<bigint> => {
    const { process } = await calls.call({ options, timeoutMs: DEFAULT_TIMEOUT_MS.read }, ({ host }, { signal }) =>
      host.processes.getProcessStatus({ sessionId, processId }, { signal }),
    );
    return process?.inputBytes ?? 0n;
  };
  const send = async (bytes: Uint8Array, options: CallOptions): Promise<void> => {
    const start = at ?? (await offsetOf(options));
    at = undefined;
    let offset = start;
    while (offset < start + BigInt(bytes.length)) {
      const from = Number(offset - start);
      const data = bytes.subarray(from, from + PIECE_BYTES);
      const request = { sessionId, processId, offset, data };
      const { acceptedBytes } = await calls.call(
        { options, timeoutMs: DEFAULT_TIMEOUT_MS.stream },
        ({ host }, { signal }) => host.processes.writeInput(request, { signal }),
      );
      offset = acceptedBytes;
    }
    at = offset;
  };

  return {
    write: async (data, options = {}) => {
      const bytes = typeof data === "string" ? Buffer.from(data) : data;
      await inTurn(() => send(bytes, options));
    },
    closeInput: async (options) => {
      await inTurn(async () => {
        await calls.call({ options, timeoutMs: DEFAULT_TIMEOUT_MS.read }, ({ host }, { signal }) =>
          host.processes.closeInput({ sessionId, processId }, { signal }),
        );
      });
    },
  };
}
