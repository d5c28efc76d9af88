import type { Progress, StreamName } from "./output.ts";
import { createSegment, type Offsets, type Segment, SEGMENT_BYTES } from "./output-segment.ts";

/** How far behind its readers may be before a tool waits, and a reader that drops lets go. */
const WINDOW_BYTES = SEGMENT_BYTES;
/** How many full segments may be on their way to the disk before a tool waits for it. */
const MAX_UNSAVED = 4;
/** How many full segments stay in memory besides being on disk, for readers that keep up. */
const RECENT_SEGMENTS = 2;

/** Output for one reader. */
export interface Frame extends Progress {
  /** Bytes of the stream just before these that this reader does not get. */
  readonly droppedBytes: number;
}

/**
 * What happens when a reader is slow: `wait` lets the tool wait for it, `drop` makes it lose output, which is counted.
 * Of several readers for which a tool waits, it waits for the fastest: one that stalls does not hold up the others.
 */
export type SlowReader = "wait" | "drop";

/** A reader's place in the output of a call. */
export interface Cursor {
  /** Bytes that it could read now. */
  readonly availableBytes: number;
  readonly next: Offsets;
  /** The next bytes of one stream; null where there are none now. */
  take(maxBytes: number): Promise<Frame | null>;
  /** Streams of which bytes were dropped that no frame has told of. */
  takeDropped(): readonly Frame[];
  close(): void;
}

/**
 * The output of one call, from its beginning: the latest part in memory, the rest on disk, as far as there is room. Any
 * number of readers read it from any offset, while it grows and afterwards.
 */
export interface OutputJournal {
  readonly state: "growing" | "ended";
  readonly totals: Offsets;
  readonly memoryBytes: number;
  /** Takes a piece of output; settles when the tool may go on. */
  append(progress: Pick<Progress, "stream" | "data">): Promise<void>;
  end(): void;
  read(options: { readonly from: Offsets; readonly slowReader: SlowReader; readonly onChange: () => void }): Cursor;
  /** Gives up the oldest segment that is on disk; answers with its bytes, 0 where there is none. */
  dropOldest(): Promise<number>;
  remove(): Promise<void>;
}

interface Reader {
  readonly slowReader: SlowReader;
  readonly onChange: () => void;
  segment: number;
  readonly next: Record<StreamName, number>;
  readonly dropped: Record<StreamName, number>;
}

export interface JournalOptions {
  /** A file of its own for each segment. */
  readonly pathOf: (segment: number) => string;
  /** Makes room for a segment on disk; false where there is none, and the segment is given up. */
  readonly makeRoom: (bytes: number) => Promise<boolean>;
}

export function createOutputJournal({ pathOf, makeRoom }: JournalOptions): OutputJournal {
  const totals: Record<StreamName, number> = { stdout: 0, stderr: 0 };
  const readers = new Set<Reader>();
  /** By number; what is given up is missing. */
  const segments = new Map<number, Segment>([[0, createSegment({ stdout: 0, stderr: 0 })]]);
  const saved = new Set<number>();
  let live = 0;
  let state: "growing" | "ended" = "growing";
  let saving: Promise<void> = Promise.resolve();
  let writing: Promise<void> = Promise.resolve();
  let unsaved = 0;
  let dropping: Promise<void> = Promise.resolve();
  let wakeTool: (() => void)[] = [];

  const changed = (): void => {
    for (const { onChange } of readers) onChange();
  };
  const lag = ({ next }: Reader): number => totals.stdout - next.stdout + totals.stderr - next.stderr;
  const isAhead = (): boolean => {
    const lags = [...readers].filter(({ slowReader }) => slowReader === "wait").map(lag);
    return lags.length > 0 && Math.min(...lags) >= WINDOW_BYTES;
  };
  const mustWait = (): boolean => state === "growing" && (unsaved > MAX_UNSAVED || isAhead());
  const releaseTool = (): void => {
    if (mustWait()) return;
    for (const wake of wakeTool) wake();
    wakeTool = [];
  };

  const giveUp = async (number: number): Promise<void> => {
    const segment = segments.get(number);
    segments.delete(number);
    saved.delete(number);
    await segment?.remove();
  };
  const write = async (number: number, segment: Segment): Promise<void> => {
    // It may have been given up while there was no room, or while it was written.
    if (!segments.has(number)) return;
    await segment.save(pathOf(number));
    if (segments.has(number)) saved.add(number);
    else await segment.remove();
  };
  const save = async (number: number): Promise<void> => {
    const segment = segments.get(number);
    if (segment === undefined) return;
    try {
      if (!(await makeRoom(segment.bytes))) throw new Error("there is no room for more output");
      writing = write(number, segment);
      await writing;
      segments.get(number - RECENT_SEGMENTS)?.release();
    } catch {
      // The tool goes on; whoever reads this part later is told how much is missing.
      await giveUp(number);
    }
  };
  const rotate = (): void => {
    const full = live;
    live += 1;
    segments.set(live, createSegment({ ...totals }));
    unsaved += 1;
    saving = saving
      .then(() => save(full))
      // A segment whose file cannot be removed is missing all the same.
      .catch(() => undefined)
      .then(() => {
        unsaved -= 1;
        releaseTool();
      });
  };

  /** Moves a reader on to a segment; what lies between is lost to it. */
  const jump = (reader: Reader, number: number): void => {
    const starts = segments.get(number)?.starts ?? totals;
    for (const stream of ["stdout", "stderr"] as const) {
      const lost = Math.max(0, starts[stream] - reader.next[stream]);
      reader.dropped[stream] += lost;
      reader.next[stream] += lost;
    }
    reader.segment = number;
  };
  const nextSegment = (after: number): number => {
    let number = after + 1;
    while (number < live && !segments.has(number)) number += 1;
    return number;
  };

  const read = async (reader: Reader, maxBytes: number): Promise<Progress | null> => {
    if (reader.slowReader === "drop" && lag(reader) > 2 * WINDOW_BYTES) jump(reader, live);
    for (;;) {
      const segment = segments.get(reader.segment);
      const part = await segment?.read(reader.next, maxBytes).catch(() => undefined);
      if (part !== undefined && part !== null) return part;
      if (reader.segment >= live) {
        // Where even the latest part is gone, all that is left is to count it.
        if (segment === undefined) jump(reader, live);
        return null;
      }
      // It was read to its end, or it was given up.
      jump(reader, nextSegment(reader.segment));
    }
  };

  return {
    get state() {
      return state;
    },
    totals,
    get memoryBytes() {
      return [...segments.values()].reduce((sum, segment) => sum + segment.memoryBytes, 0);
    },
    append: async ({ stream, data }) => {
      if (state === "ended") return;
      segments.get(live)?.add(stream, data);
      totals[stream] += data.length;
      if ((segments.get(live)?.weight ?? 0) >= SEGMENT_BYTES) rotate();
      changed();
      while (mustWait()) await new Promise<void>((resolve) => void wakeTool.push(resolve));
    },
    end: () => {
      state = "ended";
      changed();
      releaseTool();
      saving = saving.then(() => {
        for (const number of saved) segments.get(number)?.release();
      });
    },
    read: ({ from, slowReader, onChange }) => {
      const first = Math.min(...segments.keys());
      const reader: Reader = {
        slowReader,
        onChange,
        segment: first,
        next: { ...from },
        dropped: { stdout: 0, stderr: 0 },
      };
      jump(reader, first);
      readers.add(reader);
      const takeDropped = (stream: StreamName): number => {
        const count = reader.dropped[stream];
        reader.dropped[stream] = 0;
        return count;
      };
      return {
        get availableBytes() {
          return Math.max(0, lag(reader));
        },
        next: reader.next,
        take: async (maxBytes) => {
          const part = await read(reader, maxBytes);
          if (part === null) return null;
          reader.next[part.stream] += part.data.length;
          releaseTool();
          return { ...part, droppedBytes: takeDropped(part.stream) };
        },
        takeDropped: () =>
          (["stdout", "stderr"] as const)
            .filter((stream) => reader.dropped[stream] > 0)
            .map((stream) => ({
              stream,
              data: new Uint8Array(),
              offset: reader.next[stream],
              droppedBytes: takeDropped(stream),
            })),
        close: () => {
          readers.delete(reader);
          releaseTool();
        },
      };
    },
    dropOldest: async () => {
      const oldest = Math.min(...saved);
      if (!Number.isFinite(oldest)) return 0;
      const bytes = segments.get(oldest)?.bytes ?? 0;
      // One at a time, and nobody waits for the last one: it holds up only the next.
      await dropping;
      dropping = giveUp(oldest).catch(() => undefined);
      return bytes;
    },
    remove: async () => {
      for (const number of [...segments.keys()]) await giveUp(number);
      // Not for all that is still to be saved: that may wait for room, which is made by removing.
      await Promise.allSettled([writing, dropping]);
    },
  };
}
