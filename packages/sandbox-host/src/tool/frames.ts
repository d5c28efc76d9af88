import type { Clock } from "@turnbox/core";
import type { Cursor, Frame, OutputJournal, SlowReader } from "./output-journal.ts";
import type { Offsets } from "./output-segment.ts";

/** How long a small frame waits for company. */
const LINGER_MS = 10;
/** A frame of this size goes at once; in a stream that has just filled one, the next goes at twice as much, up to a limit. */
const READY_BYTES = 64 * 1024;
const MAX_READY_BYTES = 256 * 1024;
/** No frame is larger: frames grow up to it while output is waiting. */
const MAX_BYTES = 512 * 1024;
/** A silent stream says so often that it lives, by a frame without bytes. */
const KEEPALIVE_MS = 15_000;

/** Nobody sees it: a reason of its own would be made, with its stack, for each frame. */
const ENOUGH = new Error("the wait for a frame is over");

/**
 * One reader of a call's output: small pieces that come close together leave as one frame. It is told of the call's
 * journal when there is one, and ends with it.
 */
export interface FrameReader {
  /** This is the output to read; a second one is not looked at. */
  readonly bind: (journal: OutputJournal) => void;
  /** No journal comes any more. */
  readonly finish: () => void;
  /** The reader is gone; the tool does not wait for it any longer. */
  readonly close: () => void;
  readonly frames: () => AsyncIterable<Frame>;
}

export function createFrameReader(options: {
  readonly clock: Clock;
  readonly from?: Offsets;
  readonly slowReader: SlowReader;
}): FrameReader {
  const { clock, slowReader, from = { stdout: 0, stderr: 0 } } = options;
  let source: { readonly journal: OutputJournal; readonly cursor: Cursor } | null = null;
  let state: "open" | "finished" | "closed" = "open";
  let wake: (() => void) | null = null;

  const changed = (): void => {
    wake?.();
    wake = null;
  };
  const nextChange = (): Promise<"changed"> =>
    new Promise((resolve) => {
      wake = () => {
        resolve("changed");
      };
    });
  const availableBytes = (): number => source?.cursor.availableBytes ?? 0;
  const isOver = (): boolean =>
    state === "closed" || (source === null ? state === "finished" : source.journal.state === "ended");

  const isClosed = (): boolean => state === "closed";
  const alive = (): Frame => {
    const offset = source?.cursor.next.stdout ?? 0;
    return { stream: "stdout", data: new Uint8Array(), offset, droppedBytes: 0 };
  };

  /** Waits while `isEarly`, at most so long; answers whether the time passed first. */
  const wait = async (ms: number, isEarly: () => boolean): Promise<"changed" | "over"> => {
    if (!isEarly() || isOver()) return "changed";
    const enough = new AbortController();
    const over = clock.sleep(ms, { signal: enough.signal }).then(
      () => "over" as const,
      () => "over" as const,
    );
    let last: "changed" | "over" = "changed";
    while (last === "changed" && isEarly() && !isOver()) last = await Promise.race([over, nextChange()]);
    enough.abort(ENOUGH);
    return last;
  };

  return {
    bind: (journal) => {
      if (source !== null || state === "closed") return;
      source = { journal, cursor: journal.read({ from, slowReader, onChange: changed }) };
      changed();
    },
    finish: () => {
      if (state === "open") state = "finished";
      changed();
    },
    close: () => {
      state = "closed";
      source?.cursor.close();
      changed();
    },
    async *frames() {
      let readyBytes = READY_BYTES;
      for (;;) {
        if ((await wait(KEEPALIVE_MS, () => availableBytes() === 0)) === "over") {
          yield alive();
          continue;
        }
        const lingered = await wait(LINGER_MS, () => availableBytes() < readyBytes);
        readyBytes = lingered === "over" ? READY_BYTES : Math.min(readyBytes * 2, MAX_READY_BYTES);
        if (isClosed()) return;
        const isLast = isOver();
        const frame = (await source?.cursor.take(MAX_BYTES)) ?? null;
        if (frame !== null) yield frame;
        else if (isLast) break;
      }
      yield* source?.cursor.takeDropped() ?? [];
      source?.cursor.close();
    },
  };
}
