import type { Progress, StreamName } from "./capture.ts";
import { type Offsets, SEGMENT_BYTES, STREAMS } from "./segment.ts";
import { SegmentList, type SegmentListOptions } from "./segment-list.ts";

/** How far behind its readers may be before a tool waits, and a reader that drops skips output. */
const WINDOW_BYTES = SEGMENT_BYTES;
/** How many full segments may wait to be saved before a tool waits for the disk. */
const MAX_UNSAVED = 4;

/** Output for one reader. */
export interface Frame extends Progress {
  /** Bytes of the stream just before these that this reader does not get. */
  readonly droppedBytes: number;
}

/**
 * What happens when a reader is slow: `wait` makes the tool wait for it, `drop` makes it lose output, which is counted.
 * Of several readers that are waited for, the tool waits for the fastest: one that stalls does not hold up the others.
 */
export type SlowReader = "wait" | "drop";

export interface ReadOptions {
  readonly from: Offsets;
  readonly slowReader: SlowReader;
  /** Is called when the output grows or ends. */
  readonly onChange: () => void;
}

/**
 * The output of one call, from its beginning: the latest part in memory, the rest on disk, as far as there is room. Any
 * number of readers read it from any offset, while it grows and afterwards.
 */
export class OutputJournal {
  readonly #segments: SegmentList;
  readonly #readers = new Set<JournalReader>();
  #state: "growing" | "ended" = "growing";
  #waiting: (() => void)[] = [];

  constructor(options: SegmentListOptions) {
    this.#segments = new SegmentList(options, () => {
      this.#wakeTool();
    });
  }

  get state(): "growing" | "ended" {
    return this.#state;
  }

  /** How long each stream is. */
  get totals(): Offsets {
    return this.#segments.totals;
  }

  get memoryBytes(): number {
    return this.#segments.memoryBytes;
  }

  /** Takes a piece of output; settles when the tool may go on. */
  async append({ stream, data }: Pick<Progress, "stream" | "data">): Promise<void> {
    if (this.#state === "ended") return;
    this.#segments.append(stream, data);
    this.#notify();
    while (this.#mustWait()) await new Promise<void>((resolve) => void this.#waiting.push(resolve));
  }

  end(): void {
    this.#state = "ended";
    this.#notify();
    this.#wakeTool();
    this.#segments.end();
  }

  read({ from, slowReader, onChange }: ReadOptions): JournalReader {
    const reader = new JournalReader(this.#segments, from, {
      slowReader,
      onChange,
      onTake: () => {
        this.#wakeTool();
      },
      onClose: () => {
        this.#readers.delete(reader);
        this.#wakeTool();
      },
    });
    this.#readers.add(reader);
    return reader;
  }

  /** Drops the oldest part that is on disk; returns its bytes, 0 if there is none. */
  async dropOldest(): Promise<number> {
    return await this.#segments.dropOldest();
  }

  async remove(): Promise<void> {
    await this.#segments.remove();
  }

  #notify(): void {
    for (const { onChange } of this.#readers) onChange();
  }

  #mustWait(): boolean {
    return this.#state === "growing" && (this.#segments.unsaved > MAX_UNSAVED || this.#isAhead());
  }

  /** Whether the tool is ahead of all readers that it waits for. */
  #isAhead(): boolean {
    const lags = [...this.#readers].flatMap(({ slowReader, availableBytes }) =>
      slowReader === "wait" ? availableBytes : [],
    );
    return lags.length > 0 && Math.min(...lags) >= WINDOW_BYTES;
  }

  #wakeTool(): void {
    if (this.#mustWait()) return;
    for (const wake of this.#waiting) wake();
    this.#waiting = [];
  }
}

/** One reader of an output, with how far it has read. */
export class JournalReader {
  readonly slowReader: SlowReader;
  readonly onChange: () => void;
  readonly #segments: SegmentList;
  readonly #next: Record<StreamName, number>;
  /** What was skipped and is in no frame yet. */
  readonly #dropped: Record<StreamName, number> = { stdout: 0, stderr: 0 };
  readonly #onTake: () => void;
  readonly #onClose: () => void;
  #segment: number;

  constructor(
    segments: SegmentList,
    from: Offsets,
    options: Omit<ReadOptions, "from"> & { readonly onTake: () => void; readonly onClose: () => void },
  ) {
    this.slowReader = options.slowReader;
    this.onChange = options.onChange;
    this.#onTake = options.onTake;
    this.#onClose = options.onClose;
    this.#segments = segments;
    this.#next = { ...from };
    this.#segment = segments.first;
    this.#skipTo(this.#segment);
  }

  /** The offsets of the next bytes to read. */
  get next(): Offsets {
    return this.#next;
  }

  /** How many bytes it could read now. */
  get availableBytes(): number {
    const { stdout, stderr } = this.#segments.totals;
    return Math.max(0, stdout - this.#next.stdout + stderr - this.#next.stderr);
  }

  /** The next bytes of one stream; null if there are none now. */
  async take(maxBytes: number): Promise<Frame | null> {
    const part = await this.#read(maxBytes);
    if (part === null) return null;
    this.#next[part.stream] += part.data.length;
    this.#onTake();
    return { ...part, droppedBytes: this.#takeDropped(part.stream) };
  }

  /** A frame without bytes for each stream of which bytes were dropped that are in no frame yet. */
  takeDropped(): readonly Frame[] {
    return STREAMS.filter((stream) => this.#dropped[stream] > 0).map((stream) => ({
      stream,
      data: new Uint8Array(),
      offset: this.#next[stream],
      droppedBytes: this.#takeDropped(stream),
    }));
  }

  close(): void {
    this.#onClose();
  }

  async #read(maxBytes: number): Promise<Progress | null> {
    if (this.slowReader === "drop" && this.availableBytes > 2 * WINDOW_BYTES) this.#skipTo(this.#segments.last);
    for (;;) {
      const segment = this.#segments.find(this.#segment);
      const part = await segment?.read(this.#next, maxBytes).catch(() => undefined);
      if (part !== undefined && part !== null) return part;
      if (this.#segment >= this.#segments.last) {
        // If even the latest part is dropped, its bytes are counted.
        if (segment === undefined) this.#skipTo(this.#segments.last);
        return null;
      }
      // It was read to its end, or it was dropped.
      this.#skipTo(this.#segments.after(this.#segment));
    }
  }

  /** Goes on at a segment; the bytes before it are dropped for this reader. */
  #skipTo(number: number): void {
    const starts = this.#segments.find(number)?.starts ?? this.#segments.totals;
    for (const stream of STREAMS) {
      const lost = Math.max(0, starts[stream] - this.#next[stream]);
      this.#dropped[stream] += lost;
      this.#next[stream] += lost;
    }
    this.#segment = number;
  }

  #takeDropped(stream: StreamName): number {
    const count = this.#dropped[stream];
    this.#dropped[stream] = 0;
    return count;
  }
}
