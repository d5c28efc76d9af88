import type { StreamName } from "./capture.ts";
import { type Offsets, OutputSegment, SEGMENT_BYTES } from "./segment.ts";

/** How many full segments stay in memory besides being on disk, for readers that keep up. */
const RECENT_SEGMENTS = 2;

export interface SegmentListOptions {
  /** A file of its own for each segment. */
  readonly pathOf: (segment: number) => string;
  /** Makes room for a segment on disk; false if there is none, and the segment is dropped. */
  readonly makeRoom: (bytes: number) => Promise<boolean>;
}

/**
 * The segments of one output, by number from 0: the last one takes what is appended, the full ones before it are saved to
 * disk one after the other. A dropped segment is missing in the numbers.
 */
export class SegmentList {
  readonly #options: SegmentListOptions;
  readonly #onSaved: () => void;
  readonly #totals: Record<StreamName, number> = { stdout: 0, stderr: 0 };
  readonly #segments = new Map<number, OutputSegment>([[0, new OutputSegment({ stdout: 0, stderr: 0 })]]);
  readonly #saved = new Set<number>();
  #last = 0;
  #unsaved = 0;
  #saving: Promise<void> = Promise.resolve();
  #writing: Promise<void> = Promise.resolve();
  #dropping: Promise<void> = Promise.resolve();

  /** `onSaved` is called after each attempt to save a segment. */
  constructor(options: SegmentListOptions, onSaved: () => void) {
    this.#options = options;
    this.#onSaved = onSaved;
  }

  /** How many bytes were appended. */
  get totals(): Offsets {
    return this.#totals;
  }

  /** The number of the segment that takes what is appended. */
  get last(): number {
    return this.#last;
  }

  /** The lowest number that is kept. */
  get first(): number {
    return Math.min(...this.#segments.keys());
  }

  /** How many full segments wait to be saved. */
  get unsaved(): number {
    return this.#unsaved;
  }

  get memoryBytes(): number {
    return [...this.#segments.values()].reduce((sum, segment) => sum + segment.memoryBytes, 0);
  }

  find(number: number): OutputSegment | undefined {
    return this.#segments.get(number);
  }

  /** The number of the first segment after this one that is kept; the last number if none is. */
  after(number: number): number {
    let next = number + 1;
    while (next < this.#last && !this.#segments.has(next)) next += 1;
    return next;
  }

  append(stream: StreamName, data: Uint8Array): void {
    const segment = this.#segments.get(this.#last);
    segment?.add(stream, data);
    this.#totals[stream] += data.length;
    if ((segment?.weight ?? 0) >= SEGMENT_BYTES) this.#rotate();
  }

  /** Frees the memory of all saved segments, when those that wait are saved. */
  end(): void {
    this.#saving = this.#saving.then(() => {
      for (const number of this.#saved) this.#segments.get(number)?.release();
    });
  }

  /** Drops the oldest saved segment; returns its bytes, 0 if none is saved. */
  async dropOldest(): Promise<number> {
    const oldest = Math.min(...this.#saved);
    if (!Number.isFinite(oldest)) return 0;
    const bytes = this.#segments.get(oldest)?.bytes ?? 0;
    // One at a time; the caller does not wait for this removal, only for the one before.
    await this.#dropping;
    this.#dropping = this.#drop(oldest).catch(() => undefined);
    return bytes;
  }

  async remove(): Promise<void> {
    for (const number of [...this.#segments.keys()]) await this.#drop(number);
    // Segments that wait to be saved are not waited for: they may wait for room, which is made by removing.
    await Promise.allSettled([this.#writing, this.#dropping]);
  }

  #rotate(): void {
    const full = this.#last;
    this.#last += 1;
    this.#segments.set(this.#last, new OutputSegment({ ...this.#totals }));
    this.#unsaved += 1;
    this.#saving = this.#saving
      .then(() => this.#save(full))
      // A segment whose file cannot be removed is missing all the same.
      .catch(() => undefined)
      .then(() => {
        this.#unsaved -= 1;
        this.#onSaved();
      });
  }

  async #save(number: number): Promise<void> {
    const segment = this.#segments.get(number);
    if (segment === undefined) return;
    try {
      if (!(await this.#options.makeRoom(segment.bytes))) throw new Error("there is no room for more output");
      this.#writing = this.#write(number, segment);
      await this.#writing;
      this.#segments.get(number - RECENT_SEGMENTS)?.release();
    } catch {
      // The tool goes on; later readers of this part get the count of what is missing.
      await this.#drop(number);
    }
  }

  async #write(number: number, segment: OutputSegment): Promise<void> {
    // It may have been dropped while there was no room, or while it was written.
    if (!this.#segments.has(number)) return;
    await segment.save(this.#options.pathOf(number));
    if (this.#segments.has(number)) this.#saved.add(number);
    else await segment.remove();
  }

  async #drop(number: number): Promise<void> {
    const segment = this.#segments.get(number);
    this.#segments.delete(number);
    this.#saved.delete(number);
    await segment?.remove();
  }
}
