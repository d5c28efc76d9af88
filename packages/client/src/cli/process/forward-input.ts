import { hasReason } from "@turnbox/core";
import { CALL_MS } from "../deadline.ts";
import type { SandboxLink } from "../resolve/sandbox-link.ts";
import type { InputStream } from "../surroundings.ts";

/** Most bytes of one message. */
const PIECE_BYTES = 256 * 1024;
/** Ctrl-D. */
const END_OF_TEXT = Uint8Array.of(4);

export interface InputForwarding {
  readonly processId: string;
  /** How much input the process has had. */
  readonly offset: bigint;
  readonly input: InputStream;
  /** What the end of the input means for the process. */
  readonly atEnd: "close" | "type Ctrl-D";
  /** Looks at each piece before it is sent, and may keep the rest of the input from it. */
  readonly filter?: (bytes: Uint8Array) => { readonly bytes: Uint8Array; readonly last: boolean };
}

/** `closed`: the process reads no more. `stopped`: by the filter or the signal. */
export type InputEnd = "ended" | "closed" | "stopped";

/** Sends input as it comes, each byte once, also over connections that break. Ends with its signal, without an error. */
export async function forwardInput(
  link: SandboxLink,
  { processId, offset: start, input, atEnd, filter }: InputForwarding,
  { signal }: { readonly signal: AbortSignal },
): Promise<InputEnd> {
  let offset = start;
  const aborted = abortion(signal);
  const iterator = input[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await Promise.race([iterator.next(), aborted.promise]);
      if (next === "aborted") return "stopped";
      if (next.done === true) break;
      const whole = typeof next.value === "string" ? Buffer.from(next.value) : next.value;
      const { bytes, last } = filter?.(whole) ?? { bytes: whole, last: false };
      offset = await sendAll(link, { processId, offset, bytes }, { signal });
      if (last) return "stopped";
    }
    if (atEnd === "type Ctrl-D") await sendAll(link, { processId, offset, bytes: END_OF_TEXT }, { signal });
    else {
      await link.use(({ host, sessionId }) =>
        host.processes.closeInput({ sessionId, processId }, { signal, timeoutMs: CALL_MS.read }),
      );
    }
    return "ended";
  } catch (thrown) {
    if (signal.aborted) return "stopped";
    // A process that ends, or closes its input, need not take everything.
    if (hasReason(thrown, "INVALID_STATE", "PROCESS_NOT_FOUND")) return "closed";
    throw thrown;
  } finally {
    aborted.forget();
  }
}

interface Piece {
  readonly processId: string;
  readonly offset: bigint;
  readonly bytes: Uint8Array;
}

/** Answers with the offset behind the bytes. A process that reads slowly is waited for. */
async function sendAll(
  link: SandboxLink,
  { processId, offset, bytes }: Piece,
  { signal }: { readonly signal: AbortSignal },
): Promise<bigint> {
  const end = offset + BigInt(bytes.length);
  let at = offset;
  while (at < end) {
    const from = Number(at - offset);
    const data = bytes.subarray(from, from + PIECE_BYTES);
    const { acceptedBytes } = await link.use(({ host, sessionId }) =>
      host.processes.writeInput({ sessionId, processId, offset: at, data }, { signal, timeoutMs: CALL_MS.read }),
    );
    at = acceptedBytes;
  }
  return at;
}

function abortion(signal: AbortSignal): { readonly promise: Promise<"aborted">; forget(): void } {
  const { promise, resolve } = Promise.withResolvers<"aborted">();
  const onAbort = (): void => {
    resolve("aborted");
  };
  if (signal.aborted) onAbort();
  signal.addEventListener("abort", onAbort, { once: true });
  return {
    promise,
    forget: () => {
      signal.removeEventListener("abort", onAbort);
    },
  };
}
