import { type Clock, invalidArgument } from "@turnbox/core";
import type { InputStream } from "./surroundings.ts";

/** Most bytes of stdin that travel with a tool call. */
export const MAX_STDIN_BYTES = 4 * 1024 * 1024;

/**
 * Input that stays silent for this long is taken for one without a writer: scripts and test runners often leave
 * theirs open, and a command must not wait for it for ever.
 */
const SILENT_MS = 1000;

export interface StdinOptions {
  readonly clock: Clock;
  readonly signal: AbortSignal;
  /** Whether input that stays silent is waited for, or done without. */
  readonly silence: "wait" | "do without";
  /** Called if silent input is done without. */
  readonly onSilence: () => void;
}

/** All of stdin, to its end. More than the bound is refused. */
export async function readStdin(stdin: InputStream, options: StdinOptions): Promise<Uint8Array> {
  const { clock, signal } = options;
  const done = new AbortController();
  const iterator = stdin[Symbol.asyncIterator]();
  const aborted = new Promise<"aborted">((resolve) => {
    const onAbort = (): void => {
      resolve("aborted");
    };
    signal.addEventListener("abort", onAbort, { once: true });
    done.signal.addEventListener("abort", () => {
      signal.removeEventListener("abort", onAbort);
    });
  });
  const silent =
    options.silence === "wait"
      ? undefined
      : clock.sleep(SILENT_MS, { signal: done.signal }).then(
          () => "silent" as const,
          () => "silent" as const,
        );
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  try {
    for (;;) {
      signal.throwIfAborted();
      const isFirst = chunks.length === 0 && silent !== undefined;
      const next = await Promise.race([iterator.next(), aborted, ...(isFirst ? [silent] : [])]);
      if (next === "aborted") continue;
      if (next === "silent") {
        options.onSilence();
        return new Uint8Array();
      }
      if (next.done === true) return Buffer.concat(chunks);
      const chunk = typeof next.value === "string" ? Buffer.from(next.value) : next.value;
      bytes += chunk.length;
      if (bytes > MAX_STDIN_BYTES) {
        throw invalidArgument("stdin", "is longer than 4 MiB; write it to a file in the sandbox and read that");
      }
      chunks.push(chunk);
    }
  } finally {
    done.abort();
  }
}
