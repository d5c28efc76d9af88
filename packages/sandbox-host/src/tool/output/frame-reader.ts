import type { Clock } from "@turnbox/core";
import type { Frame, JournalReader, OutputJournal, SlowReader } from "./journal.ts";
import type { Offsets } from "./segment.ts";

/** How long a small frame waits for more output. */
const LINGER_MS = 10;
/** A frame of this size goes at once; in a stream that has just filled one, the next goes at twice as much, up to a limit. */
const READY_BYTES = 64 * 1024;
const MAX_READY_BYTES = 256 * 1024;
/** No frame is larger: frames grow up to it while output is waiting. */
const MAX_BYTES = 512 * 1024;
/** A silent stream sends a frame without bytes this often, which shows that the call lives. */
const KEEPALIVE_MS = 15_000;

/** It is never read: without it, an error with its stack would be made for each frame. */
const ENOUGH = new Error("the wait for a frame is over");

/**
 * One reader of a call's output: small pieces that come close together leave as one frame. It gets the call's journal by
 * `bind` when there is one, and ends with it.
 */
export class FrameReader {
  readonly #clock: Clock;
  readonly #slowReader: SlowReader;
  readonly #from: Offsets;
  #source: { readonly journal: OutputJournal; readonly reader: JournalReader } | null = null;
  #state: "open" | "finished" | "closed" = "open";
  #wake: (() => void) | null = null;

  /** `from`: the offsets at which it begins; 0 unless given. */
  constructor(options: { readonly clock: Clock; readonly from?: Offsets; readonly slowReader: SlowReader }) {
    this.#clock = options.clock;
    this.#slowReader = options.slowReader;
    this.#from = options.from ?? { stdout: 0, stderr: 0 };
  }

  /** Sets the output to read; a second one is ignored. */
  bind(journal: OutputJournal): void {
    if (this.#source !== null || this.#state === "closed") return;
    const onChange = (): void => {
      this.#changed();
    };
    const reader = journal.read({ from: this.#from, slowReader: this.#slowReader, onChange });
    this.#source = { journal, reader };
    this.#changed();
  }

  /** No journal comes any more. */
  finish(): void {
    if (this.#state === "open") this.#state = "finished";
    this.#changed();
  }

  /** Ends the reading; the tool does not wait for this reader any longer. */
  close(): void {
    this.#state = "closed";
    this.#source?.reader.close();
    this.#changed();
  }

  async *frames(): AsyncGenerator<Frame> {
    let readyBytes = READY_BYTES;
    for (;;) {
      if ((await this.#wait(KEEPALIVE_MS, () => this.#availableBytes() === 0)) === "over") {
        yield this.#keepalive();
        continue;
      }
      const lingered = await this.#wait(LINGER_MS, () => this.#availableBytes() < readyBytes);
      readyBytes = lingered === "over" ? READY_BYTES : Math.min(readyBytes * 2, MAX_READY_BYTES);
      if (this.#isClosed()) return;
      const isLast = this.#isOver();
      const frame = (await this.#source?.reader.take(MAX_BYTES)) ?? null;
      if (frame !== null) yield frame;
      else if (isLast) break;
    }
    yield* this.#source?.reader.takeDropped() ?? [];
    this.#source?.reader.close();
  }

  #availableBytes(): number {
    return this.#source?.reader.availableBytes ?? 0;
  }

  #isClosed(): boolean {
    return this.#state === "closed";
  }

  #isOver(): boolean {
    if (this.#isClosed()) return true;
    return this.#source === null ? this.#state === "finished" : this.#source.journal.state === "ended";
  }

  #keepalive(): Frame {
    const offset = this.#source?.reader.next.stdout ?? 0;
    return { stream: "stdout", data: new Uint8Array(), offset, droppedBytes: 0 };
  }

  /** Waits while `isEarly`, at most so long; `over` if the time passed first. */
  async #wait(ms: number, isEarly: () => boolean): Promise<"changed" | "over"> {
    if (!isEarly() || this.#isOver()) return "changed";
    const enough = new AbortController();
    const over = this.#clock.sleep(ms, { signal: enough.signal }).then(
      () => "over" as const,
      () => "over" as const,
    );
    let last: "changed" | "over" = "changed";
    while (last === "changed" && isEarly() && !this.#isOver()) last = await Promise.race([over, this.#nextChange()]);
    enough.abort(ENOUGH);
    return last;
  }

  #nextChange(): Promise<"changed"> {
    return new Promise((resolve) => {
      this.#wake = () => {
        resolve("changed");
      };
    });
  }

  #changed(): void {
    this.#wake?.();
    this.#wake = null;
  }
}
