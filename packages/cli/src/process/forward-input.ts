import { hasReason, type SandboxProcess } from "@turnbox/client";
import type { InputStream } from "../surroundings.ts";

/** Ctrl-D. */
const END_OF_TEXT = Uint8Array.of(4);

export interface InputForwarding {
  readonly input: InputStream;
  /** What the end of the input means for the process. */
  readonly atEnd: "close" | "type Ctrl-D";
  /** Looks at each piece before it is sent, and may keep the rest of the input from it. */
  readonly filter?: (bytes: Uint8Array) => { readonly bytes: Uint8Array; readonly last: boolean };
}

/** `closed`: the process reads no more. `stopped`: by the filter or the signal. */
export type InputEnd = "ended" | "closed" | "stopped";

/** Sends input to a process as it comes. Ends with its signal, without an error. */
export async function forwardInput(
  process: SandboxProcess,
  { input, atEnd, filter }: InputForwarding,
  { signal }: { readonly signal: AbortSignal },
): Promise<InputEnd> {
  const aborted = abortion(signal);
  const iterator = input[Symbol.asyncIterator]();
  try {
    for (;;) {
      const next = await Promise.race([iterator.next(), aborted.promise]);
      if (next === "aborted") return "stopped";
      if (next.done === true) break;
      const whole = typeof next.value === "string" ? Buffer.from(next.value) : next.value;
      const { bytes, last } = filter?.(whole) ?? { bytes: whole, last: false };
      await process.write(bytes, { signal });
      if (last) return "stopped";
    }
    if (atEnd === "type Ctrl-D") await process.write(END_OF_TEXT, { signal });
    else await process.closeInput({ signal });
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
