import type { Clock } from "@turnbox/core";
import type { Progress } from "./output.ts";

/** How long a small frame waits for company. */
const LINGER_MS = 10;
/** A frame of this size goes at once. */
const READY_BYTES = 64 * 1024;
/** No frame and no queue is larger: frames grow up to it while output is waiting. */
const MAX_BYTES = 1024 * 1024;

/**
 * Between a tool and one reader of its output: small pieces that come close together leave as one frame, and the tool
 * waits while the queue is full. After `close` the tool runs on without a reader.
 */
export interface FrameChannel {
  /** Takes a piece of output; settles when there is room for the next. */
  readonly push: (progress: Progress) => Promise<void>;
  /** No more output comes; the reader gets what is queued, then the end. */
  readonly end: () => void;
  /** The reader is gone; what is queued is dropped. */
  readonly close: () => void;
  readonly frames: () => AsyncIterable<Progress>;
}

export function createFrameChannel(clock: Clock): FrameChannel {
  let queue: Progress[] = [];
  let queuedBytes = 0;
  let state: "open" | "ended" | "closed" = "open";
  let wakeReader: (() => void) | null = null;
  let wakeTool: (() => void)[] = [];

  const changed = (): void => {
    wakeReader?.();
    wakeReader = null;
  };
  const releaseTool = (): void => {
    for (const wake of wakeTool) wake();
    wakeTool = [];
  };
  const nextChange = (): Promise<void> =>
    new Promise((resolve) => {
      wakeReader = resolve;
    });

  /** Waits until a frame is worth sending: it is large, it has lingered, or nothing more comes. */
  const ready = async (): Promise<void> => {
    while (queue.length === 0 && state === "open") await nextChange();
    const linger = new AbortController();
    const over = clock.sleep(LINGER_MS, { signal: linger.signal }).then(
      () => "over" as const,
      () => "over" as const,
    );
    while (queuedBytes < READY_BYTES && state === "open") {
      if ((await Promise.race([over, nextChange()])) === "over") break;
    }
    linger.abort();
  };

  /** The oldest pieces of one stream, joined. */
  const take = (): Progress | null => {
    const first = queue[0];
    if (first === undefined) return null;
    let count = 0;
    let bytes = 0;
    for (const piece of queue) {
      if (piece.stream !== first.stream || (count > 0 && bytes + piece.data.length > MAX_BYTES)) break;
      count += 1;
      bytes += piece.data.length;
    }
    const data = Buffer.concat(queue.slice(0, count).map((piece) => piece.data));
    queue = queue.slice(count);
    queuedBytes -= bytes;
    if (queuedBytes < MAX_BYTES) releaseTool();
    return { stream: first.stream, data, offset: first.offset };
  };

  return {
    push: async (progress) => {
      if (state !== "open") return;
      queue.push(progress);
      queuedBytes += progress.data.length;
      changed();
      if (queuedBytes >= MAX_BYTES) await new Promise<void>((resolve) => void wakeTool.push(resolve));
    },
    end: () => {
      if (state === "open") state = "ended";
      changed();
      releaseTool();
    },
    close: () => {
      state = "closed";
      queue = [];
      queuedBytes = 0;
      changed();
      releaseTool();
    },
    async *frames() {
      for (;;) {
        await ready();
        const frame = take();
        if (frame !== null) yield frame;
        else if (state !== "open") return;
      }
    },
  };
}
