import type { Clock } from "@turnbox/core";
import type { Charset } from "@turnbox/client/internal";
import { formatAge } from "../format/duration.ts";
import { cutToWidth } from "../format/display-width.ts";
import { printable } from "../printable.ts";
import { columnsOf, type OutputStream } from "../surroundings.ts";

const FRAMES: Readonly<Record<Charset, readonly string[]>> = {
  ascii: ["|", "/", "-", "\\"],
  "utf-8": ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"],
};
const FRAME_MS = 100;
/** Work that is done by then shows nothing at all. */
const FIRST_MS = 300;
/** From then on it says how long it has been at it. */
const ELAPSED_MS = 3000;
const CLEAR = "\r\u001b[K";

/** Says on one line of stderr that something is being done. Disposing of it, and Ctrl-C, clear the line. */
export interface Spinner extends Disposable {
  /** What is being done now. */
  say(text: string): void;
}

export interface SpinnerOptions {
  readonly stream: OutputStream;
  readonly clock: Clock;
  /** Clears the line as soon as it is aborted, however long the work takes to end. */
  readonly signal: AbortSignal;
  readonly charset: Charset;
  readonly text: string;
}

/** Turns on its own until disposed of. Draws nothing if the stream is no terminal. */
export function createSpinner({ stream, clock, signal, charset, text }: SpinnerOptions): Spinner {
  const ending = new AbortController();
  const stop = (): void => {
    ending.abort();
  };
  let said = text;
  if (stream.isTTY === true && !signal.aborted) {
    signal.addEventListener("abort", stop, { once: true });
    const line = (frame: number, elapsedMs: number): string => {
      const glyphs = FRAMES[charset];
      const elapsed = elapsedMs < ELAPSED_MS ? "" : ` ${formatAge(elapsedMs)}`;
      const whole = `${glyphs[frame % glyphs.length] ?? ""} ${printable(said)}${elapsed}`;
      // What is longer than the line would go on in the next one, which is not cleared.
      return cutToWidth(whole, { width: columnsOf(stream) - 1, mark: "" });
    };
    // A line that cannot be drawn is no reason to end the work that it shows.
    spin({ stream, clock, signal: ending.signal, line }).catch(() => undefined);
  }
  return {
    say: (next) => {
      said = next;
    },
    [Symbol.dispose]: () => {
      signal.removeEventListener("abort", stop);
      stop();
    },
  };
}

interface Spin {
  readonly stream: OutputStream;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly line: (frame: number, elapsedMs: number) => string;
}

/** Never fails: the work does not depend on being shown. */
async function spin({ stream, clock, signal, line }: Spin): Promise<void> {
  const startMs = clock.monotonicMs();
  const write = (text: string): void => void stream.write(text, () => undefined);
  try {
    await clock.sleep(FIRST_MS, { signal });
    // Cleared at once, before anything else is written: not when the sleep has noticed its end.
    signal.addEventListener(
      "abort",
      () => {
        write(CLEAR);
      },
      { once: true },
    );
    for (let frame = 0; !signal.aborted; frame += 1) {
      write(`\r${line(frame, clock.monotonicMs() - startMs)}\u001b[K`);
      await clock.sleep(FRAME_MS, { signal });
    }
  } catch {
    // The end of the work ends the sleep.
  }
}
