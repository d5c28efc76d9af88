import type { Clock, OutputChunk } from "@turnbox/client";

/** Often enough for a person, and for clients that give up on a request that stays silent. */
const TICK_MS = 1000;
const MAX_MESSAGE_CHARACTERS = 200;
const KEPT_CHARACTERS = 4096;

/** What a client that asked for progress is sent. */
export interface ProgressReport {
  /** Seconds since the call began: it grows, as the protocol wants it, also if nothing is printed. */
  readonly progress: number;
  readonly message: string;
}

export interface ProgressSource {
  readonly clock: Clock;
  readonly report: (report: ProgressReport) => Promise<void>;
  readonly message: () => string;
}

/** Reports once a second until the work is over. A report that does not arrive changes nothing about the work. */
export async function withProgress<T>(work: Promise<T>, { clock, report, message }: ProgressSource): Promise<T> {
  const over = new AbortController();
  const startMs = clock.monotonicMs();
  const tick = async (): Promise<void> => {
    for (;;) {
      await clock.sleep(TICK_MS, { signal: over.signal });
      await report({ progress: Math.round((clock.monotonicMs() - startMs) / 1000), message: message() });
    }
  };
  const ticking = tick().catch(() => undefined);
  try {
    return await work;
  } finally {
    over.abort();
    await ticking;
  }
}

/** The last line of output so far. */
export interface OutputTail {
  push(chunk: Pick<OutputChunk, "data">): void;
  lastLine(): string;
}

export function createOutputTail(): OutputTail {
  const decoder = new TextDecoder();
  let kept = "";
  return {
    push: ({ data }) => {
      kept = (kept + decoder.decode(data, { stream: true })).slice(-KEPT_CHARACTERS);
    },
    lastLine: () => {
      const lines = kept.split(/[\r\n]+/).filter((line) => line.trim() !== "");
      return (lines.at(-1) ?? "running").slice(0, MAX_MESSAGE_CHARACTERS);
    },
  };
}
